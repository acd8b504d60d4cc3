"""How a family spells the elements in which it writes a call, and a call written so: `element_body` reads it.

One JSON object stands in place of the parameters where one of these could not be read back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from adapter.core.events import Json, JsonObject
from adapter.parsing.bodies.argument_collection import encode_unescaped, reads_as_null
from adapter.parsing.encoding import calls_encoder

ATTRIBUTES_LIMIT = 400
"""Characters of attributes in one tag; more is prose."""

Describe = Callable[[Json], str]
"""The attributes, after the key's, by which a parameter's tag tells its value's type."""


class XmlInvokeTags(NamedTuple):
    """How one family spells the elements. Of several spellings the first is the one to write.

    An opening tag is the spelling, attributes and ``end``; closing tags are whole, in the order of the opening ones.
    ``json``: the opening and closing tag of an element that holds all arguments as JSON.
    ``sections``: what may hold calls, both its opening and its closing tags.
    ``has_cdata``: strings that are no plain words stand in ``<![CDATA[...]]>``.
    """

    call: Sequence[str]
    call_close: Sequence[str]
    parameter: Sequence[str]
    parameter_close: Sequence[str]
    section: Sequence[str] = ()
    section_close: Sequence[str] = ()
    end: str = ">"
    name: str = "name"
    key: str = "name"
    json: tuple[str, str] | None = None
    unescape: Callable[[str], str] = str
    escape: Callable[[str], str] | None = None
    has_cdata: bool = False
    stray_call_close: Sequence[str] = ()
    """Closing tags of another family that models write for a call's."""

    @property
    def all(self) -> tuple[str, ...]:
        parameters = (*self.parameter, *self.parameter_close)
        return (*self.call, *self.call_close, *parameters, *self.section, *self.section_close, *(self.json or ()))


def encode_call(
    tags: XmlInvokeTags, name: str, arguments: JsonObject, describe: Describe | None, line_end: str = "\n"
) -> str:
    """A call as ``tags`` spell it. ``describe``: None for families whose tags say nothing of a value's type."""
    opening = f'{tags.call[0]} {tags.name}="{name}"{tags.end}'
    if any(_is_ambiguous(tags, key, value, describe) for key, value in arguments.items()):
        body = json.dumps(arguments, ensure_ascii=False)
        if tags.json:
            body = f"{tags.json[0]}{body}{tags.json[1]}"
    else:
        body = line_end.join(_encode_parameter(tags, key, value, describe) for key, value in arguments.items())
    return f"{opening}{line_end}{body}{line_end}{tags.call_close[0]}"


def section_encoder(tags: XmlInvokeTags, describe: Describe | None) -> Callable[[list[tuple[str, JsonObject]]], str]:
    """Return an ``encode_calls`` that writes all calls in one section, each on lines of its own."""
    body = partial(encode_call, tags, describe=describe)
    return calls_encoder(body, between="\n", opening=f"{tags.section[0]}\n", closing=f"\n{tags.section_close[0]}")


def _encode_parameter(tags: XmlInvokeTags, key: str, value: Json, describe: Describe | None) -> str:
    attributes = f' {tags.key}="{tags.escape(key) if tags.escape else key}"{describe(value) if describe else ""}'
    text = encode_unescaped(value)
    if tags.has_cdata and isinstance(value, str) and any(char in text for char in "<&\n"):
        text = f"<![CDATA[{text}]]>"
    return f"{tags.parameter[0]}{attributes}{tags.end}{text}{tags.parameter_close[0]}"


def _is_ambiguous(tags: XmlInvokeTags, key: str, value: Json, describe: Describe | None) -> bool:
    """Whether a parameter would not be read back, since nothing in it can be escaped."""
    text = encode_unescaped(value).lower()
    forbidden = "\n" if tags.escape else "\n\"<>'&"
    return (
        any(tag.lower() in text for tag in tags.all)
        or (describe is None and reads_as_null(value))
        or any(char in key for char in forbidden)
        or tags.end in key
        or not key
        or len(tags.escape(key) if tags.escape else key) > ATTRIBUTES_LIMIT // 4
    )
