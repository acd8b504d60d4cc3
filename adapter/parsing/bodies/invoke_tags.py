"""Parse ``invoke`` elements in a section, which Anthropic's prompts, MiniMax M2, dots and Muse Glimmer share.

::

    <function_calls>                    also <minimax:tool_call>, <dots_function_call>, <atem:function_calls>
    <invoke name="NAME">
    <parameter name="KEY">value, unescaped</parameter>
    </invoke>
    </function_calls>

Each tag may have a namespace, and the namespaces may differ. The tool's definition, and not a tag, declares a value's
type. The tags are plain words and not control tokens, so a call without a section must begin a line.
"""

from __future__ import annotations

from collections.abc import Callable

from adapter.core.events import JsonObject
from adapter.parsing.bodies.call_section import CallSection
from adapter.parsing.bodies.xml_invoke import XmlInvokeReader
from adapter.parsing.bodies.xml_invoke_spelling import XmlInvokeTags, section_encoder

MINIMAX, ANTHROPIC, DOTS, ATEM = "minimax:tool_call", "function_calls", "dots_function_call", "atem:function_calls"

NAMESPACES = ("", "antml:", "atem:", "minimax:", "anthropic:", "claude:", "mcp:", "tool:", "ns:")
"""Namespaces of the tags. Markers are literals, so these are the namespaces that models have been seen to write."""

_SECTIONS = (ANTHROPIC, MINIMAX, DOTS, *(namespace + ANTHROPIC for namespace in NAMESPACES[1:]))


def _tags(section: str, namespace: str) -> XmlInvokeTags:
    """Return all spellings of the tags, beginning with the spelling that encoders write."""
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


_ALL = _tags(ANTHROPIC, "")
STRAYS = (*_ALL.section_close, *_ALL.call_close, *_ALL.parameter_close)
SECTION = CallSection(
    opens=_ALL.section,
    closes=_ALL.section_close,
    call_opens=_ALL.call,
    read_call=XmlInvokeReader(_ALL),
    calls_anywhere=False,
    may_be_json=True,
)
OPENERS = SECTION.openers


def calls_encoder(section: str, namespace: str = "") -> Callable[[list[tuple[str, JsonObject]]], str]:
    """Return an encoder that writes calls in the section called ``section``."""
    return section_encoder(_tags(section, namespace), None)
