"""Elements named after the tool and its parameters, as Cline and Roo Code teach them.

Format: the tool use section of the system prompts of cline/cline and RooCodeInc/Roo-Code. Any model may write these
elements, so a model's name does not identify the format::

    <NAME>
    <KEY>value, unescaped, on the same line as its tags or on separate lines</KEY>
    </NAME>

Such tags may also be ordinary XML in an answer. A tag opens a call only if it is the name of one of the session's
tools, begins a line, and precedes a parameter, JSON or the closing tag. ``<parameter=KEY>``,
``<parameter name="KEY">`` and ``</function>`` may replace the tags inside.

``<NAME KEY="value" />`` on a separate line is a call if no element of HTML can have the name, all attributes are
parameters of the tool, and all required parameters are present. ``<NAME>value</NAME>`` is a call if the tool has
exactly one parameter, or if the value is YAML with all required parameters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from functools import lru_cache, partial

from adapter.core.errors import FormatError
from adapter.core.events import Json, JsonObject
from adapter.core.json.encode import dump_json
from adapter.core.yaml_subset import decode_yaml
from adapter.parsing.bodies.generic_call_tags import begins_with_json, build_attribute_reader
from adapter.parsing.bodies.tagged_arguments import (
    ATTRIBUTES,
    BodyError,
    PendingCall,
    encode_unescaped,
    read_value,
    reads_as_null,
)
from adapter.parsing.bodies.tagged_value_end import RawValue, strip_line_break
from adapter.parsing.call_encoders import build_calls_encoder, build_result_encoder
from adapter.parsing.call_events import is_placeholder
from adapter.parsing.format import TEXT, BodyReader, BodyResult, BodySource, CallOpener, Format
from adapter.parsing.marker_set import get_marker_set
from adapter.parsing.stream_buffer import Reader, StreamBuffer
from adapter.parsing.tagged_json import TaggedJson
from adapter.tools.coercion import list_types
from adapter.tools.tool import Tool

KEY_LIMIT = 100
"""Maximum length of a parameter's opening tag, in characters."""

ATTRIBUTES_LIMIT = 4000
"""Maximum length of the attributes of a self-closing element, in characters."""

_KEY = re.compile(
    rf"<(?:parameter(?:=|\s+name\s*=\s*[\"']))?([A-Za-z_][\w.-]*)[\"']?(?:\s*(/?)|{ATTRIBUTES}\s*)>", re.IGNORECASE
)
_PARAMETER = ("<parameter=", "<parameter ")
_FUNCTION_CLOSE = "</function>"
_BEGINS_LINE = re.compile(r"\r?\n[ \t]*<([\w.-]+)>")
_BEGINS_TAG = re.compile(r"</?[\w.-]*")


def build_openers(names: Sequence[str]) -> tuple[CallOpener, ...]:
    elements = [CallOpener(f"<{name}>", _build_reader(name)) for name in names if _is_key(name)]
    tags = [CallOpener(f"<{name}{end}", partial(_read_tag, name)) for name in names if _is_key(name) for end in " /"]
    return (*elements, *tags)


_is_markup = re.compile(
    "a|abbr|address|area|article|aside|audio|b|base|blockquote|body|br|button|canvas|caption|cite|code|col|"
    "data|dd|del|details|dialog|div|dl|dt|em|embed|fieldset|figure|filter|footer|form|g|h1|h2|h3|h4|head|"
    "header|hr|html|i|iframe|image|img|input|ins|kbd|label|legend|li|line|link|main|map|mark|mask|math|menu|"
    "meta|meter|nav|object|ol|option|output|p|param|path|picture|pre|progress|q|root|s|samp|script|search|"
    "section|select|set|slot|source|span|strong|style|sub|summary|sup|svg|switch|symbol|table|task|tbody|td|"
    "template|text|th|thead|think|time|title|tr|track|u|ul|use|var|video|view"
).fullmatch
"""Matches names of HTML and SVG elements, and of other elements that are frequent in answers."""


def is_distinctive_name(name: str) -> bool:
    """Return whether the name has an underscore or capital letter. An HTML element cannot have such a name."""
    return "_" in name or not name.islower()


def _read_tag(name: str, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse an element with attributes in its opening tag. The attributes of an empty element are all its arguments."""
    if not (source.after_call or (source.at_line_start and is_distinctive_name(name))):
        return TEXT
    source.may_be_text = True
    tool, taken = source.tools[name], list[str]()
    if (yield from begins_with_json(source, consumed)):
        return TEXT
    if consumed[-1].endswith("/"):
        source.push_back("/")
        consumed[-1] = consumed[-1][:-1]
    values = yield from build_attribute_reader(name).consume_attributes(source, taken)
    call = PendingCall(tool.name, tool)
    for key in filter(call.has_parameter, values):
        call.fix("value-in-attribute")
        call.add_text(key, values[key])
    if taken and not taken[-1].endswith("/>"):
        consumed.extend(taken)
        return (yield from _read_body(call, tool, source, consumed))
    is_alone = (yield from source.begins_block()) or source.is_empty
    is_whole = {*tool.required} <= call.arguments.keys() == values.keys()
    if not taken or not is_whole or not is_alone:
        source.push_back("".join(taken))
        return TEXT
    consumed.extend(taken)
    return call.build_result()


def _build_reader(name: str) -> BodyReader:
    def read(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        if not (source.at_line_start or source.after_call):
            return TEXT
        tool = source.tools[name]
        return (yield from _read_body(PendingCall(tool.name, tool), tool, source, consumed))

    return read


def _read_body(call: PendingCall, tool: Tool, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    opening, closing = f"<{tool.name}>", f"</{tool.name}>"
    may_be_text = True
    while True:
        char = yield from source.skip_space(consumed)
        if char == "{" and may_be_text:
            return (yield from TaggedJson(opening, closing, name=tool.name)(source, consumed))
        closers = (closing, f"</{tool.name} >", *(() if may_be_text else (_FUNCTION_CLOSE,)))
        if (yield from source.consume_marker(get_marker_set(*closers), consumed)):
            return call.build_result()
        if source.final and _BEGINS_TAG.fullmatch(source.text, source.position):
            consumed.append(source.consume_rest())
            return call.build_unclosed_result(source, has_begun_to_close=consumed[-1].startswith("</"))
        key = yield from _consume_key(source, consumed, tool)
        if not key and may_be_text and char:
            return (yield from _read_only_value(call, tool, source, consumed))
        if not key and not char:
            return call.build_unclosed_result(source)
        if not key:
            if (yield from source.peek_marker(get_marker_set(closing), KEY_LIMIT)):
                yield from source.consume_through(get_marker_set(closing), consumed)
            error = f"the text in {opening} is not a parameter: expected <NAME>value</NAME> or {closing}"
            return BodyResult(error=error)
        may_be_text = False
        try:
            yield from _read_value(key, tool, source, consumed, call)
        except BodyError as error:
            return error.result


def _read_only_value(call: PendingCall, tool: Tool, source: StreamBuffer, consumed: list[str]) -> Reader[BodyResult]:
    """Parse ``<NAME>value</NAME>``. The value is YAML, or text for a tool with exactly one parameter. Other text is
    part of the answer. If the name is an ordinary word, the answer must end after the element."""
    is_distinctive = is_distinctive_name(tool.name)
    if call.arguments or (not is_distinctive and _is_markup(tool.name)):
        return TEXT
    taken, ahead = list[str](), list[str]()
    text = yield from source.consume_until(f"</{tool.name}>", ATTRIBUTES_LIMIT, taken)
    is_alone = (yield from source.begins_block()) or source.is_empty
    if text and is_alone and not is_distinctive:
        is_alone = (yield from source.skip_space(ahead)) == ""
        source.push_back("".join(ahead))
    pairs = _decode_pairs(text, tool) if text and is_alone else None
    if text is None or not is_alone or (pairs is None and not _is_only_value(text, tool)):
        source.push_back("".join(taken))
        return TEXT
    consumed.extend(taken)
    call.fix("missing-inner-tag")
    if pairs is None:
        call.add_text(next(iter(tool.properties)), _strip_margins(strip_line_break(text)))
    for key, value in (pairs or {}).items():
        call.add_value(key, value)
    return call.build_result()


def _is_only_value(text: str, tool: Tool) -> bool:
    """Return whether ``text`` can be the value of the tool's only parameter, rather than markup or a placeholder."""
    value, keys = text.strip(), [*tool.properties]
    if len(keys) != 1 or value[:1] in ("", "<") or re.search(rf"</?{re.escape(keys[0])}\b", value, re.IGNORECASE):
        return False
    return value.lower() != keys[0].lower() and not is_placeholder(keys[0], value)


def _decode_pairs(text: str, tool: Tool) -> JsonObject | None:
    """Return the arguments in ``text``, which is YAML or pairs, or None."""
    try:
        value = decode_yaml(text)
    except FormatError:
        return None
    return value if isinstance(value, dict) and value and tool.accepts(value.keys()) else None


def _read_value(key: str, tool: Tool, source: StreamBuffer, consumed: list[str], call: PendingCall) -> Reader[None]:
    """Parse a parameter after its opening tag, which is the last item of ``consumed``."""
    is_parameter = consumed[-1].lower().startswith(_PARAMETER)
    is_empty = consumed[-1].endswith("/>")
    if is_parameter or is_empty:
        call.fix("misspelt-inner-tag")
    if is_empty:
        call.add_text(key, "")
        return
    tag = "parameter" if is_parameter else key
    end = _build_raw_value(tool.name, tag, _find_next_keys(tool, key))
    text, closing = yield from read_value(end, source, consumed, _reject_parameter)
    if closing:
        text = call.check_end(key, text, (f"<{key}>",), (f"</{key}>",))
    else:
        call.fix("missing-inner-tag")
        call.check_unclosed(key, text, (f"</{tag}>", f"</{tool.name}>"))
        text, others = _split_other_parameters(text, tool.properties.keys() - call.arguments.keys() - {key})
        source.push_back(others)
        consumed[-2:] = [text]
        text = strip_line_break(text)
    call.add_text(key, _strip_margins(text))


def _is_key(name: str) -> bool:
    match = _KEY.fullmatch(f"<{name}>")
    return match is not None and match[1] == name


def _consume_key(source: StreamBuffer, consumed: list[str], tool: Tool) -> Reader[str]:
    """Consume ``<KEY>``, or ``<KEY/>`` if KEY is a parameter, and return KEY. Otherwise, consume nothing and return
    ""."""
    taken: list[str] = []
    yield from source.consume_until(">", KEY_LIMIT, taken)
    match = _KEY.fullmatch("".join(taken))
    if match is None or (match[2] and match[1] not in tool.properties):
        source.push_back("".join(taken))
        return ""
    consumed.extend(taken)
    return match[1]


@lru_cache(maxsize=64)
def _build_raw_value(name: str, key: str, keys: tuple[str, ...]) -> RawValue:
    return RawValue(
        closes=[f"</{key}>"],
        next_opens=[*_PARAMETER, *(f"<{other}{end}" for other in keys for end in (">", "/>", " "))],
        call_opens=[f"<{name}>"],
        call_closes=[f"</{name}>", f"</{name} >", *([_FUNCTION_CLOSE] if key == "parameter" else [])],
    )


def _find_next_keys(tool: Tool, key: str) -> tuple[str, ...]:
    """Return the parameters whose tags may follow the value of ``key``. They include ``key`` if it is a list, because a
    list's tag may be repeated for each item."""
    is_list = "array" in list_types(tool.properties.get(key, {}))
    return tuple(other for other in tool.properties if other != key or is_list)


def _split_other_parameters(text: str, keys: Set[str]) -> tuple[str, str]:
    """Split a value without a closing tag from the elements of other parameters below it. Return the value and the
    elements."""
    begins = next((match for match in _BEGINS_LINE.finditer(text) if match[1] in keys), None)
    if begins is None or not text.rstrip().endswith(tuple(f"</{key}>" for key in keys)):
        return text, ""
    return text[: begins.start()], text[begins.start() :]


def _reject_parameter(_source: StreamBuffer, _tag: str) -> Reader[bool]:
    """Treat a parameter's tag inside a value as part of the value, because XML may contain ``<path>``."""
    yield from ()
    return False


def _strip_margins(text: str) -> str:
    """Remove the line breaks around a value on separate lines. Other values are unchanged."""
    begins_line = re.match(r"\r?\n", text)
    return strip_line_break(text[begins_line.end() :]) if begins_line else text


def encode_call(name: str, arguments: JsonObject) -> str:
    if any(_is_ambiguous(key, value) for key, value in arguments.items()):
        body = dump_json(arguments) + "\n"
    else:
        body = "".join(f"<{key}>{encode_unescaped(value)}</{key}>\n" for key, value in arguments.items())
    return f"<{name}>\n{body}</{name}>"


def _is_ambiguous(key: str, value: Json) -> bool:
    """Return whether an element would be parsed back differently, for example because it contains a tag."""
    text = encode_unescaped(value)
    is_tag = _is_key(key) and len(f"<{key}>") <= KEY_LIMIT
    return "<" in text or text.startswith(("\n", "\r\n")) or reads_as_null(value) or not is_tag


FORMAT = Format(
    name="tool_elements",
    aliases=("cline", "roo", "roo_code"),
    openers=(),
    build_tool_openers=build_openers,
    encode_calls=build_calls_encoder(encode_call, between="\n"),
    encode_result=build_result_encoder("[{name}] Result:\n"),
    result_markers=("] Result:\n",),
)
