"""Parse ``invoke`` elements in a section, which Anthropic's prompts, MiniMax M2, dots and Muse Glimmer share.

::

    <function_calls>                    also <minimax:tool_call>, <dots_function_call>, <atem:function_calls>
    <invoke name="NAME">
    <parameter name="KEY">value, unescaped</parameter>
    </invoke>
    </function_calls>

Each tag may have a namespace, and the namespaces may differ. The tool's definition, not a tag, declares a value's type.
The tags are plain words rather than control tokens, so a call without a section must begin a line.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from adapter.core.events import JsonObject
from adapter.parsing.bodies.call_section import CallSection
from adapter.parsing.bodies.xml_invoke import XmlInvokeReader
from adapter.parsing.bodies.xml_invoke_tags import XmlInvokeTags, build_section_encoder
from adapter.parsing.format import CallOpener

MINIMAX, ANTHROPIC, DOTS, ATEM = "minimax:tool_call", "function_calls", "dots_function_call", "atem:function_calls"

NAMESPACES = ("", "antml:", "antml ", "atem:", "minimax:", "anthropic:", "claude:", "mcp:", "tool:", "ns:")
"""Namespaces that models are known to write. For any other, see `build_opener`."""

_SECTIONS = (ANTHROPIC, MINIMAX, DOTS, *(namespace + ANTHROPIC for namespace in NAMESPACES[1:]))


def _build_tags(section: str, namespace: str) -> XmlInvokeTags:
    """Return the tags in all known spellings. The first spelling, which encoders write, has ``section`` and
    ``namespace`` (which includes its colon)."""
    namespaces = (namespace, *(other for other in NAMESPACES if other != namespace))
    sections = (section, *(other for other in _SECTIONS if other != section))
    return XmlInvokeTags(
        call=(*(f"<{each}invoke" for each in namespaces), "< invoke"),
        call_close=(*(f"</{each}invoke>" for each in namespaces), "</invoke>"),
        parameter=tuple(f"<{each}parameter" for each in namespaces),
        parameter_close=tuple(f"</{each}parameter>" for each in namespaces),
        section=tuple(f"<{each}>" for each in sections),
        section_close=tuple(f"</{each}>" for each in sections),
    )


_ALL = _build_tags(ANTHROPIC, "")
STRAYS = (*_ALL.section_close, *_ALL.call_close, *_ALL.parameter_close)


def _build_section(tags: XmlInvokeTags) -> CallSection:
    return CallSection(
        opens=tags.section,
        closes=tags.section_close,
        call_opens=tags.call,
        read_call=XmlInvokeReader(tags),
        calls_anywhere=False,
        may_be_json=True,
    )


read_all = XmlInvokeReader(_ALL)
"""Parser for the elements in any spelling."""
SECTION = _build_section(_ALL)
OPENERS = SECTION.openers


@lru_cache(maxsize=64)
def build_opener(namespace: str) -> CallOpener:
    """Return the opening marker, with its parser, for calls whose tags have ``namespace``, which includes its colon."""
    tags = _build_tags(ANTHROPIC, namespace)
    return CallOpener(tags.call[0], _build_section(tags).read_alone)


def build_calls_encoder(section: str, namespace: str = "") -> Callable[[list[tuple[str, JsonObject]]], str]:
    """Return a function for `Format.encode_calls` that writes ``invoke`` elements, with ``namespace``, in an element
    called ``section``."""
    return build_section_encoder(_build_tags(section, namespace), None)
