"""Kimi K2: JSON arguments after an id that contains the name.

Format: chat_template.jinja of moonshotai/Kimi-K2-Instruct, Kimi-K2-Thinking and Kimi-K2.5. Calls are numbered through
the conversation, and results are returned with the id of their call::

    <|tool_calls_section_begin|>
    <|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{...}<|tool_call_end|>
    <|tool_calls_section_end|>

All tokens are on one line. If a server or client rewrites ids, the model imitates the rewritten ids
(``functions_NAME_0``, ``call_abc123``). The tool's name is then searched in the id and, if that fails, among the
arguments.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from adapter.core.events import JsonObject
from adapter.core.json.encode import dump_json
from adapter.parsing.bodies.call_section import CallSection
from adapter.parsing.bracket_delimited_json import UntaggedJson
from adapter.parsing.call_encoders import build_result_encoder
from adapter.parsing.format import TEXT, BodyResult, BodySource, CallOpener, Format
from adapter.parsing.marker_set import MarkerSet
from adapter.parsing.stream_buffer import HEAD_LIMIT, Reader
from adapter.parsing.tagged_json import TaggedJson
from adapter.tools.decoded_json_calls import NAME_KEYS, DecodedCall
from adapter.tools.tool_set import ToolSet

SECTION_OPEN, SECTION_CLOSE = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
MISSPELT_OPEN, MISSPELT_CLOSE = "<|tool_call_section_begin|>", "<|tool_call_section_end|>"
CALL_OPEN, ARGUMENTS_OPEN, CALL_CLOSE = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"

_read_json = TaggedJson(CALL_OPEN, CALL_CLOSE)
_after_id = MarkerSet(ARGUMENTS_OPEN, CALL_CLOSE, CALL_OPEN, SECTION_CLOSE, MISSPELT_CLOSE, "{")
_in_section = MarkerSet(ARGUMENTS_OPEN, CALL_OPEN, SECTION_CLOSE, MISSPELT_CLOSE)
_ID = re.compile(r"(?:functions?[.:])?(?P<name>[^\s:<>{}]{1,200}?)(?::(?P<index>\d+))?")
_STRIPPED = re.compile(rf"\s*(?:functions\.)?(?P<name>[\w.-]{{1,200}}):\d+\s*{re.escape(ARGUMENTS_OPEN)}")
_MAY_BE_STRIPPED = re.compile(r"\s*+[\w.-]*+(?::\d*+\s*+(?:<[|\w]*+)?)?")
_INDEX = re.compile(r"\d{1,6}\s*(?=\{)")
_MAY_BE_INDEX = re.compile(r"\d{0,6}+\s*+")
_SANITISED_ID = re.compile(r"functions?_(?P<name>.+?)_\d+|(?:functions?\.?)?(?P<other>.+?)[^\w\s.-]?\d+")
"""Matches ids that proxies rewrote for servers that reject dots and colons, and ids without the colon before the
index."""


def read_call(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse a call after ``<|tool_call_begin|>``."""
    marker = yield from source.peek_marker(_after_id, HEAD_LIMIT)
    if not marker:
        return source.read_cut_head(consumed)
    ahead: list[str] = []
    yield from source.read_until(_after_id, ahead)
    id_text = "".join(ahead).strip()
    name, fixes = _find_name_in_id(id_text, source.tools)
    if not id_text and marker == "{":
        consumed.extend(ahead)
        source.push_back(marker)
        return (yield from _read_json(source, consumed)).with_repairs("foreign-body")
    match marker.lower():
        case "<|tool_call_argument_begin|>":
            consumed.extend([*ahead, marker])
        case "{" if _ID.fullmatch(id_text) and (":" in id_text or source.tools.match(name)):
            consumed.extend(ahead)
            source.push_back(marker)
            fixes.append("missing-inner-tag")
        case "<|tool_call_end|>":
            consumed.extend([*ahead, marker])
            return BodyResult(error=f"the call {id_text[:60]!r} has no arguments: expected {ARGUMENTS_OPEN} and JSON")
        case _:
            source.push_back("".join([*ahead, marker]))
            return TEXT
    result = yield from TaggedJson(CALL_OPEN, CALL_CLOSE, name=name)(source, consumed)
    return _use_name_in_arguments(result, source.tools).with_repairs(*fixes) if result.calls else result


def _find_name_in_id(id_text: str, tools: ToolSet) -> tuple[str, list[str]]:
    match = _ID.fullmatch(id_text)
    name = match["name"] if match else id_text
    if name in tools or (match and match["index"] is not None):
        return name, []
    for other in (id_text.partition(":")[0], id_text.rpartition(":")[0]):
        if (name := other.removeprefix("functions.")) in tools:
            return name, ["tool-name"]
    name = match["name"] if match else id_text
    sanitised = _SANITISED_ID.fullmatch(id_text)
    if sanitised is None or (sanitised["other"] and sanitised["other"] not in tools):
        return name, []
    return sanitised["name"] or sanitised["other"], ["tool-name"]


def _use_name_in_arguments(result: BodyResult, tools: ToolSet) -> BodyResult:
    """If the id names no tool, use the name in the arguments, or the only tool that accepts them."""
    (call,) = result.calls
    if tools.match(call.name) is not None:
        return result
    for key in NAME_KEYS:
        name = call.arguments.get(key)
        if isinstance(name, str) and tools.match(name) is not None:
            rest = {other: value for other, value in call.arguments.items() if other != key}
            return BodyResult((DecodedCall(name, rest, call.fixes, call.end),), (*result.fixes, "name-in-arguments"))
    if call.name.isdigit():
        matching_tools = [tool for tool in tools.values() if tool.accepts(call.arguments.keys())]
        if len(matching_tools) == 1 and call.arguments:
            return BodyResult((call._replace(name=matching_tools[0].name),), (*result.fixes, "tool-name"))
    return result


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    encoded = (
        f"{CALL_OPEN}functions.{name}:{index}{ARGUMENTS_OPEN}{dump_json(arguments)}{CALL_CLOSE}"
        for index, (name, arguments) in enumerate(calls)
    )
    return f"{SECTION_OPEN}{''.join(encoded)}{SECTION_CLOSE}"


def read_unopened(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse a call without its opening marker. The call's id directly follows the section's marker."""
    ahead: list[str] = []
    yield from source.skip_space(ahead)
    marker = yield from source.peek_marker(_in_section, HEAD_LIMIT)
    id_text = source.text[source.position : source.position + HEAD_LIMIT].lower().partition(ARGUMENTS_OPEN)[0]
    is_unopened = marker.lower() == ARGUMENTS_OPEN and _ID.fullmatch(id_text.strip()) is not None
    source.push_back("".join(ahead))
    if not is_unopened:
        return (yield from _section.read(source, consumed))
    return (yield from read_call(source, consumed)).with_repairs("missing-open-tag")


_section = CallSection(
    opens=(SECTION_OPEN, MISSPELT_OPEN),
    closes=(SECTION_CLOSE, MISSPELT_CLOSE),
    call_opens=(CALL_OPEN,),
    read_call=read_call,
    misspelt=(MISSPELT_OPEN,),
    keeps_space=True,
)


def read_stripped(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse a call at the start of an answer after the server stripped its opening markers."""
    may_continue = partial(_may_be_stripped, tools=source.tools)
    if (yield from source.peek_call(_STRIPPED, HEAD_LIMIT, may_continue)) is None:
        return TEXT
    return (yield from read_call(source, consumed)).with_repairs("missing-open-tag")


def _may_be_stripped(ahead: str, tools: ToolSet) -> bool:
    """Return whether ``ahead`` may be the start of an id that calls a known tool."""
    word = ahead.strip().removeprefix("functions.").partition(":")[0]
    begins_id = "functions.".startswith(ahead.strip()) or tools.has_prefix(word)
    return begins_id and _MAY_BE_STRIPPED.fullmatch(ahead) is not None


def build_openers(names: Sequence[str]) -> tuple[CallOpener, ...]:
    """Return the opening markers of calls whose tokens the server stripped, as in ``functions.NAME:0{...}``."""
    return tuple(CallOpener(f"functions.{name}:", partial(_read_without_tokens, name)) for name in names)


def _read_without_tokens(name: str, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    if not (source.at_line_start or source.after_call):
        return TEXT
    index = yield from source.peek_match(_INDEX, HEAD_LIMIT, _MAY_BE_INDEX.fullmatch)
    if index is None:
        return TEXT
    source.consume_match(index, consumed)
    read = UntaggedJson("arguments", after_marker=True, name=name)
    return (yield from read(source, consumed)).with_fixes("missing-open-tag")


OPENERS = tuple(
    opener._replace(read=read_unopened) if opener.marker in (SECTION_OPEN, MISSPELT_OPEN) else opener
    for opener in _section.openers
)

FORMAT = Format(
    name="kimi_k2",
    aliases=("kimi",),
    openers=OPENERS,
    build_tool_openers=build_openers,
    read_stripped_start=read_stripped,
    encode_calls=encode_calls,
    encode_result=build_result_encoder("## Return of {id}\n"),
    result_markers=("\n## Return of ",),
    stray_closers=(SECTION_CLOSE, MISSPELT_CLOSE, CALL_CLOSE),
    stop_sequences=("<|im_end|>",),
    special_tokens=(SECTION_OPEN, SECTION_CLOSE, CALL_OPEN, ARGUMENTS_OPEN, CALL_CLOSE, "<think>", "</think>"),
    model_patterns=(r"kimi-?_?k2(?![.p_-]?[5-9](?!\d))",),
    template_fingerprints=("tool_declare<|im_middle|>", SECTION_OPEN),
)
