"""Parse a call in a tag or code fence that only announces it, such as ``<tools>`` or ```` ```tool_call ````.

::

    <tag>{"name": "NAME", "arguments": {...}}</tag>        one object, or a list
    <tag>[NAME(KEY=VALUE)]</tag>                           Python, as a list or a single call
    <tag>NAME {...}</tag>                                  a name, and the arguments after a space, colon or line break
    <tag><name>NAME</name><arguments>{...}</arguments></tag>       see `name_and_argument_elements`
    <tag>NAME<arg_key>KEY</arg_key>...</tag>               a name and pairs, as in `arg_key_value`
    <tag>                                                  YAML
    name: NAME
    arguments:
      KEY: value
    </tag>

A code fence may surround the call. Because the tags are ordinary words, only calls to the session's tools are accepted.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from adapter.core.errors import FormatError
from adapter.core.json.strict import DecodedJson
from adapter.core.yaml_subset import decode_yaml
from adapter.parsing.bodies.arg_key_value import KeyValueReader
from adapter.parsing.bodies.key_value_tags import GLM
from adapter.parsing.bodies.name_and_argument_elements import read_elements
from adapter.parsing.bodies.python_scanner import PythonBlock, read_list
from adapter.parsing.fallback_readers import mark_foreign_opener
from adapter.parsing.format import TEXT, BodyReader, BodyResult, BodySource, CallOpener
from adapter.parsing.json_calls import build_calls_from_json
from adapter.parsing.marker_set import MarkerSet, get_marker_set
from adapter.parsing.stream_buffer import Reader
from adapter.parsing.tagged_json import TaggedJson
from adapter.parsing.wrapper_tags import is_tag
from adapter.tools.decoded_json_calls import DecodedCall
from adapter.tools.tool_set import ToolSet

_NAME_LIMIT = 100
_NAME = re.compile(r"([^\W\d][\w.-]{0,80}+)\s{0,3}+(?=\()|([^\W\d][\w.-]{0,80}+):?\s{0,3}+(?=\{)")
_NAME_BEGINNING = re.compile(r"(?:[^\W\d][\w.-]{0,80}+(?::?\s{0,3}+)?)?")
_YAML = re.compile(r"(?:name|tool|function):[ \t]*[\"']?([^\W\d][\w.-]{0,80})[\"']?[ \t]*\r?\n\s*[a-z_]{1,20}:")
_YAML_BEGINNING = re.compile(
    r"(?:n|na|nam|t|to|too|f|fu|fun|func|functi|functio|name|tool|function)(?::[^\n]*+(?:\n\s*+\w*+)?)?"
)
_FENCE_LIMIT = 40
_fence = MarkerSet("```")


def _takes(call: DecodedCall, tools: ToolSet) -> bool:
    """Return whether ``call`` names a known tool that has all its arguments as parameters. If not, the text may be the
    definition of a tool."""
    tool = tools.match(call.name)
    return tool is not None and call.arguments.keys() <= tool.properties.keys()


@lru_cache(maxsize=64)
def build_announced_opener(tag: str) -> CallOpener:
    """Return the opening marker ``<tag>`` with a parser that accepts a call in any notation after it."""
    return mark_foreign_opener(CallOpener(f"<{tag}>", build_announced_reader(f"<{tag}>", f"</{tag}>")))


@lru_cache(maxsize=64)
def build_announced_reader(opening: str, closing: str) -> BodyReader:
    """Return a parser that accepts a call in any notation between ``opening``, which announces a call, and
    ``closing``."""
    close, read_python = get_marker_set(closing), PythonBlock(closing, fence="```", opening=opening)

    def read(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        if not (source.at_line_start or source.after_call):
            return TEXT
        source.may_be_text = True
        if (yield from source.skip_space(consumed)) == "`":
            yield from source.consume_marker(_fence, consumed)
            if (yield from source.consume_until("\n", _FENCE_LIMIT, consumed)) is None:
                return TEXT
        if not is_tag(opening) and (yield from source.peek_after_space(source.openers))[1]:
            return BodyResult()  # around a call that has markers of its own
        result = yield from read_content(source, consumed)
        if not result.calls_known_tools(source.tools):
            return TEXT
        if "".join(consumed).lower().endswith(closing.lower()):
            return result
        yield from source.skip_space(consumed)
        if closing != "```" and (yield from source.consume_marker(_fence, consumed)):
            yield from source.skip_space(consumed)
        if (yield from source.consume_marker(close, consumed)):
            return result.remove_fixes("missing-close-tag")
        return TEXT if source.was_cut else result

    def read_yaml(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        text, marker = yield from source.consume_through(close, consumed)
        try:
            value = DecodedJson(decode_yaml(text), len(text), ()) if marker else None
            return build_calls_from_json([value], "arguments", source.tools, 0) if value is not None else TEXT
        except FormatError as error:
            return BodyResult(error=f"the call in {opening} cannot be read: {error}. Write it again, as JSON.")

    def read_content(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        char = yield from source.skip_space(consumed)
        if char == "[":
            result = yield from _read_lists(source, consumed)
            if result.calls:
                return result
        if char and char in "{[":
            return (yield from TaggedJson(opening, closing, may_list=True)(source, consumed))
        if char == "<":
            result = yield from read_elements(source, consumed, closing)
            return result if all(_takes(call, source.tools) for call in result.calls) else TEXT
        if (yield from source.peek_call(_YAML, 2 * _NAME_LIMIT, _YAML_BEGINNING.fullmatch)) is not None:
            return (yield from read_yaml(source, consumed))
        name = yield from source.peek_call(_NAME, _NAME_LIMIT, _NAME_BEGINNING.fullmatch)
        if name is None:
            result = (yield from _build_pairs_reader(opening, closing)(source, consumed)) or TEXT
            return TEXT if any(not call.arguments for call in result.calls) else result  # `<tool>NAME</tool>`
        if name[1]:
            return (yield from read_python(source, consumed))
        source.consume_match(name, consumed)
        return (yield from TaggedJson(opening, closing, name=name[2])(source, consumed))

    return read


def _read_lists(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse consecutive lists of Python calls. After the last one, only whitespace is consumed."""
    base = source.offset - sum(map(len, consumed))
    calls, fixes, result = list[DecodedCall](), dict[str, None](), TEXT
    while (yield from source.skip_space(consumed)) == "[":
        start, taken = source.offset - base, list[str]()
        found = yield from read_list(source, taken)
        if not found.calls:
            source.push_back("".join(taken))
            break
        consumed += taken
        calls += [call if call.end is None else call._replace(end=start + call.end) for call in found.calls]
        fixes |= dict.fromkeys(found.fixes)
        result = found
    return result._replace(calls=tuple(calls), fixes=tuple(fixes)) if calls else TEXT


@lru_cache(maxsize=64)
def _build_pairs_reader(opening: str, closing: str) -> KeyValueReader:
    return KeyValueReader(replace(GLM, open=opening, close=closing))
