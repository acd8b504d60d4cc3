"""Writes a derived format as a file of `adapter/parsing/formats` with its cases: for whoever wants to keep it for good."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields, replace

from adapter.core.events import InvalidToolCall, Json, JsonObject, MarkupDelta, RejectedCall, TextDelta, ToolCall
from adapter.parsing.bodies.format_compiler import compile_format
from adapter.parsing.bodies.format_spec import FormatSpec, KeyValueLayout
from adapter.parsing.format import Format
from adapter.parsing.formats import FORMATS
from adapter.parsing.parser import parse
from adapter.tools.tool import ToolSet

PLACEHOLDER = "TODO"
"""In a written file's first sentence, for which a test wants the models' name and how they write calls."""
WIDTH = 120

_FILE = '''"""{placeholder}: which models write this format, and how ({body}).

Format: derived from a chat template; TODO: its owner and address. Its SHA-256 is
{digest}::

{example}
"""

from __future__ import annotations

from dataclasses import replace

from adapter.reading.bodies.described import format_of
from adapter.reading.bodies.description import Description{pair_text}

DESCRIPTION = Description(
{settings}
)

FORMAT = replace(
    format_of(DESCRIPTION),
    models=(),  # regular expressions for the names of the models
    template_marks=({marks}),
)
'''


def generate_format_files(description: FormatSpec, name: str, source: str, digest: str) -> dict[str, str]:
    """The files by their paths below a checkout of this project. ``source``: the template's text."""
    description = replace(description, name=name)
    format = compile_format(description)
    example = description.encode_calls([("get_weather", {"city": "Oslo"})])
    known = {opener.marker for entry in FORMATS.values() for opener in entry.openers}
    marks = [opener.marker for opener in format.openers if opener.marker in source and opener.marker not in known][:1]
    settings = "\n".join(_setting(key, value) for key, value in _settings(description))
    text = _FILE.format(
        placeholder=PLACEHOLDER,
        body=f"calls as {description.body}",
        digest=digest,
        example="\n".join(f"    {line}".rstrip() for line in example.replace("\\", "\\\\").splitlines()),
        pair_text=", PairText" if description.pairs is not None else "",
        settings=settings,
        marks="".join(f"{_literal(mark)}," for mark in marks),
    )
    cases = {
        f"fixtures/cases/{name}/{claim}.toml": _case(written, format, finish_reason)
        for claim, written, finish_reason in _texts(description)
    }
    return {f"adapter/parsing/formats/{name}.py": text, **cases}


def _settings(description: FormatSpec) -> Iterator[tuple[str, object]]:
    """The fields that are not as usual."""
    for each in fields(description):
        value = getattr(description, each.name)
        usual = each.default_factory() if each.default_factory is not MISSING else each.default
        if value != usual:
            yield each.name, value


def _setting(key: str, value: object, indent: str = "    ") -> str:
    """A field as the formatter has it: one item per line where it is too long for a line."""
    line = f"{indent}{key}={_literal(value, indent)},"
    if len(line) <= WIDTH or not isinstance(value, tuple | list | dict):
        return line
    items = [f"{_literal(key)}: {_literal(item)}" for key, item in value.items()] if isinstance(value, dict) else None
    opening, closing = "()" if items is None else "{}"
    lines = [f"{indent}    {item}," for item in items or map(_literal, value)]
    return "\n".join([f"{indent}{key}={opening}", *lines, f"{indent}{closing},"])


def _literal(value: object, indent: str = "    ") -> str:
    """``value`` as the formatter has it: double quotes unless these need more escapes, a line for each field."""
    match value:
        case str():
            quote = "'" if value.count('"') > value.count("'") else '"'
            return (
                quote + "".join(f"\\{c}" if c == quote else c if c in "'\"" else repr(c)[1:-1] for c in value) + quote
            )
        case tuple() | list():
            items = ", ".join(_literal(item, indent) for item in value)
            return f"({items},)" if len(value) == 1 else f"({items})"
        case dict():
            return "{" + ", ".join(f"{_literal(key)}: {_literal(item)}" for key, item in value.items()) + "}"
        case KeyValueLayout():
            inner = f"{indent}    "
            lines = [_setting(each.name, getattr(value, each.name), inner) for each in fields(value)]
            return "\n".join(["PairText(", *lines, f"{indent})"])
        case _:
            return repr(value)


_WEATHER: tuple[str, JsonObject] = ("get_weather", {"city": "Oslo"})
_TIME: tuple[str, JsonObject] = ("get_time", {})
TOOLS = ToolSet(
    [
        {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
        {"name": "get_time", "parameters": {"type": "object", "properties": {}}},
        {
            "name": "write_file",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
            },
        },
    ]
)


def _texts(description: FormatSpec) -> Iterator[tuple[str, str, str]]:
    """What the cases claim, their texts and how these end."""

    def written(*calls: tuple[str, JsonObject]) -> str:
        return description.encode_calls(list(calls))

    def file(content: str) -> tuple[str, JsonObject]:
        return "write_file", {"path": "a.txt", "content": content}

    one = written(_WEATHER)
    yield "one-call", one, "stop"
    yield "two-calls", written(_WEATHER, _TIME), "stop"
    yield "call-after-text", f"I look.\n{one}", "stop"
    yield "no-arguments", written(_TIME), "stop"
    yield "lines-and-quotes", written(file('first\n  "second" \\n\nlast')), "stop"
    yield "other-scripts", written(file("Ünï 漢字 🙂")), "stop"
    yield "an-empty-value", written(file("")), "stop"
    yield "cut-in-a-value", one[: one.index("Oslo") + 2], "length"
    if description.ends:
        yield "end-token", one + description.ends[0], "stop"
    else:
        yield "text-alone", "Nothing to call.", "stop"


def _case(text: str, format: Format, finish_reason: str) -> str:
    turn = parse(text, TOOLS, format, finish_reason, generation_prompt="")
    events = [claim for event in turn.events if (claim := _claim(event)) is not None]
    lines = [f"text = {_string(text)}", "events = ["]
    lines += [f"  {json.dumps(claim, ensure_ascii=False)}," for claim in events]
    lines += ["]", 'source = "derived from the chat template"']
    if finish_reason != "stop":
        lines.append(f'finish_reason = "{finish_reason}"')
    return "\n".join(lines) + "\n"


def _claim(event: object) -> Sequence[Json] | None:
    match event:
        case TextDelta(text=text):
            return ["text", text]
        case MarkupDelta(raw=raw):
            return ["markup", raw]
        case ToolCall(name=name, arguments=arguments, fixes=fixes):
            return ["call", name, json.dumps(arguments, ensure_ascii=False), *fixes]
        case InvalidToolCall(error=error):
            return ["invalid", error.partition(" before")[0]]
        case RejectedCall():
            return None
        case _:
            return None


def _string(text: str) -> str:
    """A basic TOML string: JSON's escapes are TOML's, too."""
    return json.dumps(text, ensure_ascii=False)
