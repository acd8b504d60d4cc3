"""Learn a format from a response template, which some models ship with their chat template.

A response template describes how to parse a model's answer (transformers 5.13, documentation "Response parsing"): for
each field of a message, the markers around it and the kind of its content. It is the ``response_template`` key of
``tokenizer_config.json``. Answers with known calls are written as the template describes them, and a format is learned
from these examples.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from re import _constants as codes  # type: ignore[attr-defined,unused-ignore] # the parser of `re` has no public name
from re import _parser  # type: ignore[attr-defined,unused-ignore]
from typing import Any

from adapter.core.events import Json, JsonObject
from adapter.grammars.regex_parser import convert_class
from adapter.parsing.bodies.format_compiler import compile_format
from adapter.parsing.format import Format
from adapter.parsing.format_spec import FormatSpec
from adapter.parsing.formats import FORMATS
from adapter.parsing.parser import parse
from adapter.prompting.deriving.known_call_locations import Call, CannotLearnError
from adapter.prompting.deriving.learn_from_examples import LearningExample, LearningResult, build_tools, learn_format

CALLS, CONTENT = "tool_calls", "content"
THINKING = ("thinking", "reasoning_content", "reasoning")
_SPACE = (codes.IN, [(codes.CATEGORY, codes.CATEGORY_SPACE)])
MAX_PATTERN = 1_000
"""Maximum length of a regular expression in a template."""
MAX_SAMPLE = 2_000
"""Maximum length of the text generated for a regular expression."""
TEXT, THOUGHT = "I look.", "Which tool fits?"
ANSWERS: tuple[list[Call], ...] = (
    [("get_weather", {"city": "Oslo"})],
    [("get_weather", {"city": "Oslo", "unit": "celsius"}), ("read_file", {"path": "a.py"})],
    [("read_file", {"path": "src/b.py", "encoding": "utf-8"})],
    [("search", {"query": "fjords", "site": "example.org"}), ("search", {"query": "hills", "site": "example.org"})],
)


def learn_response_template(template: JsonObject, name: str) -> LearningResult:
    """Learn the format ``name``. Raises CannotLearnError if the template cannot be used."""
    writer = _AnswerWriter(template)
    examples = [
        LearningExample(writer.render_answer(calls, text), calls)
        for text, calls in zip(("", "", TEXT, ""), ANSWERS, strict=True)
    ]
    learned = learn_format(examples, name)
    if learned.known is None:
        learned = replace(learned, known=_find_known(examples))
    if learned.spec is None:
        return learned
    reasoning = dict([writer.thinking]) if all(writer.thinking) else {}
    answer_tags = dict([writer.content]) if all(writer.content) else {}
    ends = tuple(dict.fromkeys((*learned.spec.ends, *writer.ends)))
    spec = replace(learned.spec, reasoning=reasoning, answer_tags=answer_tags, ends=ends, stops=ends[:1])
    _check_thinking(spec, writer, examples)
    return replace(learned, spec=spec)


def _find_known(examples: Sequence[LearningExample]) -> str | None:
    """Return the built-in format that parses all examples, or None. A missing closing tag is tolerated, because a
    template may omit it. Any other repair rules a format out."""
    tools, text = build_tools(examples), examples[0].text.lower()

    def may_read(format: Format) -> bool:
        is_begun = any(opener.marker.lower() in text for opener in format.openers)
        return is_begun or not format.openers or format.build_tool_openers is not None

    def reads(format: Format, example: LearningExample) -> bool:
        calls = parse(example.text, tools, format).calls
        is_own = all(set(call.fixes) <= {"missing-close-tag", "missing-inner-tag"} for call in calls)
        return is_own and [(call.name, call.arguments) for call in calls] == example.calls

    candidates = filter(may_read, FORMATS.all)
    return next((each.name for each in candidates if all(reads(each, example) for example in examples)), None)


def _check_thinking(spec: FormatSpec, writer: _AnswerWriter, examples: Sequence[LearningExample]) -> None:
    calls = ANSWERS[0]
    text = writer.render_answer(calls, TEXT, THOUGHT if spec.reasoning else "")
    turn = parse(text, build_tools(examples), compile_format(spec), policy="strict")
    found = turn.reasoning.strip(), turn.content.strip(), [(call.name, call.arguments) for call in turn.calls]
    if found != (THOUGHT if spec.reasoning else "", TEXT, calls):
        raise CannotLearnError(f"the format learned from it misreads the template's own answer {text!r} as {found!r}")


class _AnswerWriter:
    """Writes answers as the template describes them. ``thinking`` and ``content`` are the opening and closing markers
    of these parts, or "". ``ends`` are the tokens that end the answer."""

    def __init__(self, template: JsonObject) -> None:
        fields = _require_mapping(template.get("fields"), "fields")
        self._field = _require_mapping(fields.get(CALLS), f"fields.{CALLS}")
        self._pattern = self._field.get("open_pattern")
        self._groups = _list_group_names(self._pattern) if isinstance(self._pattern, str) else frozenset[str]()
        self._call = _Transform(self._field, self._groups)
        thinking: Json = next((fields[name] for name in THINKING if name in fields), {})
        self.thinking = _find_markers(_require_mapping(thinking, "the reasoning"))
        content = _require_mapping(fields.get(CONTENT, {}), f"fields.{CONTENT}")
        closes = content.get("close")
        self.content = _find_markers(content)
        self.ends = () if self.content[0] else tuple(_list_literals(closes))

    def render_answer(self, calls: Sequence[Call], text: str = "", thought: str = "") -> str:
        pieces = [f"{self.thinking[0]}{thought}{self.thinking[1]}" if thought else ""]
        pieces.append(f"{self.content[0]}{text}{self.content[1] if self.content[0] else ''}" if text else "")
        return "".join([*pieces, *self._render_regions(calls)])

    def _render_regions(self, calls: Sequence[Call]) -> Iterator[str]:
        if self._field.get("transform_each") or not self._field.get("repeats"):
            bodies = [self._call.build_shape(name, arguments) for name, arguments in calls]
            yield self._render_region(calls[0][0], self._encode(bodies))
            return
        for name, arguments in calls:
            yield self._render_region(name, self._encode(self._call.build_shape(name, arguments)))

    def _render_region(self, name: str, body: str) -> str:
        groups = {self._call.name_group: name} if self._call.name_group else {}
        opening, _ = _find_markers(self._field, groups)
        return f"{opening}{body}{_find_markers(self._field)[1]}"

    def _encode(self, value: Json) -> str:
        options = _require_mapping(self._field.get("content_args", {}), "content_args")
        kind = self._field.get("content", "text")
        if kind == "json":
            if options.get("unquoted_keys") or options.get("string_delims"):
                return _render_loose_json(value, options)
            return json.dumps(value, ensure_ascii=False)
        if not isinstance(value, dict) or kind not in ("xml-inline", "kv-lines"):
            raise CannotLearnError(f"content {kind!r} of {CALLS} is not supported; use json, xml-inline or kv-lines")
        if kind == "kv-lines":
            separator, between = str(options.get("kv_sep", ":")), str(options.get("line_sep", "\n"))
            return between.join(f"{key}{separator} {text}" for key, text in value.items())
        pattern = options.get("tag_pattern")
        if not isinstance(pattern, str) or not {"key", "value"} <= _list_group_names(pattern):
            raise CannotLearnError("content_args.tag_pattern of xml-inline has no groups 'key' and 'value'")
        return (
            "".join(f"\n{_build_sample(pattern, {'key': key, 'value': str(text)})}" for key, text in value.items())
            + "\n"
        )


class _Transform:
    """Describes where a field of the template holds a call's name and arguments. ``name_group`` is the group of
    ``open_pattern`` that matches the name, or "" if the name is in the content."""

    def __init__(self, field: Mapping[str, Json], groups: frozenset[str]) -> None:
        transform = _require_mapping(field.get("transform", {"function": "{content}"}), "transform")
        function = transform.get("function", transform)
        self.name_group, self._name, self._arguments = "", ["name"], ["arguments"]
        if function in ("{content}", "{content.function}"):
            return
        parts = _require_mapping(function, "transform.function")
        name, self._arguments = _parse_path(parts.get("name")), _parse_path(parts.get("arguments"))
        if len(name) == 1 and name[0] in groups:
            self.name_group = name[0]
        self._name = name

    def build_shape(self, name: str, arguments: JsonObject) -> Json:
        """Return the content that the transform would turn into this call."""
        if self.name_group and not self._arguments:
            return arguments
        found: JsonObject = {}
        if not self.name_group:
            _set(found, self._name, name)
        _set(found, self._arguments, arguments)
        return found


def _parse_path(placeholder: Json) -> list[str]:
    """Return the keys in ``{content.a.b}`` or ``{a}``; empty for ``{content}``."""
    found = re.fullmatch(r"\{([\w.]+)\}", placeholder) if isinstance(placeholder, str) else None
    if found is None:
        raise CannotLearnError(
            f"the transform of {CALLS} contains {placeholder!r}; expected a placeholder such as '{{name}}'"
        )
    keys = found[1].split(".")
    return keys[1:] if keys[0] == "content" else keys


def _set(value: Json, keys: Sequence[str], inner: Json) -> None:
    for key in keys[:-1]:
        value = value.setdefault(key, {}) if isinstance(value, dict) else None
    if not keys or not isinstance(value, dict) or keys[-1] in value:
        raise CannotLearnError(f"the transform of {CALLS} uses the content both as a name and as arguments")
    value[keys[-1]] = inner


def _render_loose_json(value: Json, options: Mapping[str, Json]) -> str:
    """Write JSON with bare keys, or with other quotes around strings."""
    delimiters = options.get("string_delims") or [['"', '"']]
    pair = _list_literals(delimiters[0]) if isinstance(delimiters, list) else []
    if len(pair) != 2:
        raise CannotLearnError(f"string_delims of {CALLS} must be pairs of strings, but it is {delimiters!r:.60}")
    if isinstance(value, dict):
        quote = "" if options.get("unquoted_keys") else '"'
        return (
            "{"
            + ",".join(f"{quote}{key}{quote}:{_render_loose_json(each, options)}" for key, each in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ",".join(_render_loose_json(each, options) for each in value) + "]"
    return value.join(pair) if isinstance(value, str) else json.dumps(value)


# ------------------------------------------------------------------- markers


def _require_mapping(value: Json, what: str) -> Mapping[str, Json]:
    if not isinstance(value, dict):
        raise CannotLearnError(f"{what} of the response template is not an object: {str(value)[:60]!r}")
    return value


def _list_literals(value: Json) -> list[str]:
    found = value if isinstance(value, list) else [value]
    return [each for each in found if isinstance(each, str) and each]


def _find_markers(field: Mapping[str, Json], groups: Mapping[str, str] | None = None) -> tuple[str, str]:
    """Return the text that opens and the text that closes a field, each "" if missing."""
    opening, closing = (
        _build_sample(pattern, groups or {})
        if isinstance(pattern := field.get(f"{key}_pattern"), str)
        else next(iter(_list_literals(field.get(key))), "")
        for key in ("open", "close")
    )
    return opening, closing


def _list_group_names(pattern: str) -> frozenset[str]:
    return frozenset(_parse(pattern).state.groupdict)


def _parse(pattern: str) -> Any:
    if len(pattern) > MAX_PATTERN:
        raise CannotLearnError(f"a pattern of the response template has more than {MAX_PATTERN} characters")
    try:
        return _parser.parse(pattern, re.DOTALL)
    except (re.error, RecursionError, OverflowError) as error:
        raise CannotLearnError(f"the pattern {pattern!r} of the response template cannot be parsed: {error}") from error


def _build_sample(pattern: str, groups: Mapping[str, str]) -> str:
    """Return a short text that ``pattern`` matches, with the given text for each group."""
    parsed = _parse(pattern)
    names = {number: name for name, number in parsed.state.groupdict.items()}
    try:
        return _build_nodes_sample(parsed, {number: groups[name] for number, name in names.items() if name in groups})
    except RecursionError as error:
        raise CannotLearnError("a pattern of the response template is nested too deeply") from error


def _build_nodes_sample(nodes: Any, groups: Mapping[int, str]) -> str:
    text = "".join(_build_node_sample(code, value, groups) for code, value in nodes)
    if len(text) > MAX_SAMPLE:
        raise CannotLearnError(
            f"a pattern of the response template matches no text shorter than {MAX_SAMPLE} characters"
        )
    return text


def _build_node_sample(code: Any, value: Any, groups: Mapping[int, str]) -> str:
    match code:
        case codes.LITERAL:
            return chr(value)
        case codes.SUBPATTERN:
            number, _, _, inner = value
            return groups.get(number) or _build_nodes_sample(inner, groups)
        case codes.MAX_REPEAT | codes.MIN_REPEAT | codes.POSSESSIVE_REPEAT:
            least, _, inner = value
            if least > MAX_SAMPLE:
                raise CannotLearnError(f"a pattern of the response template repeats more than {MAX_SAMPLE} times")
            if not least:  # models write a line break between tags, where whitespace is optional
                return "\n" if len(groups) == 1 and inner[0] == _SPACE else ""
            return _build_nodes_sample(inner, groups) * int(least)
        case codes.BRANCH:
            return next(filter(None, (_build_nodes_sample(branch, groups) for branch in value[1])), "")
        case codes.ATOMIC_GROUP:
            return _build_nodes_sample(value, groups)
        case codes.IN:
            return _build_class_sample(value)
        case codes.NOT_LITERAL:
            return _build_class_sample([(code, value)])
        case codes.GROUPREF if value in groups:
            return groups[value]
        case codes.ANY:
            return "x"
        case codes.AT | codes.ASSERT | codes.ASSERT_NOT:
            return ""
        case _:
            raise CannotLearnError(f"a pattern of the response template uses {code}, which is not supported")


def _build_class_sample(items: Any) -> str:
    """Return a character of a class such as ``[^<]`` or ``\\s``."""
    ranges = convert_class(items)
    if not ranges:
        raise CannotLearnError("a pattern of the response template has a class that matches no character")
    usual = (char for char in "xyz1 " if any(first <= ord(char) <= last for first, last in ranges))
    return next(usual, chr(ranges[0][0]))
