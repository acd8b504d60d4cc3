"""The tags that one model family writes around a call (`XmlInvokeTags`), and an encoder for such calls. For the parser,
see `xml_invoke`.

If a parameter would be parsed back differently, all parameters are written as one JSON object.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from adapter.core.events import Json, JsonObject
from adapter.core.json.encode import dump_json
from adapter.parsing.bodies.tagged_arguments import encode_unescaped, is_ambiguous_pair, reads_as_null
from adapter.parsing.call_encoders import build_calls_encoder

ATTRIBUTES_LIMIT = 400
"""Maximum length of the attributes in one tag, in characters. Anything longer is prose."""

Describe = Callable[[Json], str]
"""A function that returns the attributes for the type of a value, such as ``type="number"`` after a space."""


class XmlInvokeTags(NamedTuple):
    """The tags of one model family. The parser accepts all spellings in a field; encoders write the first."""

    call: Sequence[str]
    """The start of a call's opening tag, before the attributes and ``end``."""
    call_close: Sequence[str]
    """Closing tags of a call, in the order of ``call``."""
    parameter: Sequence[str]
    """The start of a parameter's opening tag."""
    parameter_close: Sequence[str]
    """Closing tags of a parameter, in the order of ``parameter``."""
    section: Sequence[str] = ()
    """Opening tags of a section that may enclose all calls."""
    section_close: Sequence[str] = ()
    end: str = ">"
    name: str = "name"
    key: str = "name"
    json: tuple[str, str] | None = None
    """The opening and closing tag of an element with all arguments as JSON."""
    unescape: Callable[[str], str] = str
    escape: Callable[[str], str] | None = None
    has_cdata: bool = False
    """True to write strings in ``<![CDATA[...]]>``, unless they are plain words."""
    stray_call_close: Sequence[str] = ()
    """Other families' closing tags that models write instead of the call's own."""
    broken_close: Sequence[str] = ()
    """The start of a closing tag whose word may be misspelt. After an argument, such a tag closes the call, whatever
    the word."""

    @property
    def all(self) -> tuple[str, ...]:
        parameters = (*self.parameter, *self.parameter_close)
        return (*self.call, *self.call_close, *parameters, *self.section, *self.section_close, *(self.json or ()))


def encode_call(
    tags: XmlInvokeTags, name: str, arguments: JsonObject, describe: Describe | None, line_end: str = "\n"
) -> str:
    """Encode a call in the first spelling of ``tags``. ``describe`` is None for families whose tags do not declare a
    value's type. ``line_end`` is the text between tags."""
    opening = f'{tags.call[0]} {tags.name}="{name}"{tags.end}'
    if any(_is_ambiguous(tags, key, value, describe) for key, value in arguments.items()):
        body = dump_json(arguments)
        if tags.json:
            body = f"{tags.json[0]}{body}{tags.json[1]}"
    else:
        body = line_end.join(_encode_parameter(tags, key, value, describe) for key, value in arguments.items())
    return f"{opening}{line_end}{body}{line_end}{tags.call_close[0]}"


def build_section_encoder(
    tags: XmlInvokeTags, describe: Describe | None
) -> Callable[[list[tuple[str, JsonObject]]], str]:
    """Return a function for `Format.encode_calls` that writes all calls in one section, each on separate lines."""
    body = partial(encode_call, tags, describe=describe)
    return build_calls_encoder(body, between="\n", opening=f"{tags.section[0]}\n", closing=f"\n{tags.section_close[0]}")


def _encode_parameter(tags: XmlInvokeTags, key: str, value: Json, describe: Describe | None) -> str:
    attributes = f' {tags.key}="{tags.escape(key) if tags.escape else key}"{describe(value) if describe else ""}'
    text = encode_unescaped(value)
    if tags.has_cdata and isinstance(value, str) and any(char in text for char in "<&\n"):
        text = f"<![CDATA[{text}]]>"
    return f"{tags.parameter[0]}{attributes}{tags.end}{text}{tags.parameter_close[0]}"


def _is_ambiguous(tags: XmlInvokeTags, key: str, value: Json, describe: Describe | None) -> bool:
    """Return whether a parameter would be parsed back differently, because values cannot be escaped."""
    forbidden = "\n" if tags.escape else "\n\"<>'&"
    return (
        (describe is None and reads_as_null(value))
        or tags.end in key
        or len(tags.escape(key) if tags.escape else key) > ATTRIBUTES_LIMIT // 4
        or is_ambiguous_pair(key, encode_unescaped(value), tags.all, forbidden)
    )
