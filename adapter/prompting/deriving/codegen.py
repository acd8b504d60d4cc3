"""Generate a module for `adapter/parsing/formats` and its test cases from a derived format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

from adapter.core.events import JsonObject
from adapter.parsing.bodies.format_compiler import compile_format
from adapter.parsing.fixture_writer import format_case
from adapter.parsing.format import Format
from adapter.parsing.format_file import list_changed_fields
from adapter.parsing.format_spec import FormatSpec, KeyValueLayout
from adapter.parsing.formats import FORMATS
from adapter.parsing.parser import parse
from adapter.tools.tool_set import ToolSet

PLACEHOLDER = "TODO"
"""Placeholder in the generated docstring. A test fails until a description of the models and their calls replaces
it."""
WIDTH = 120

_FILE = '''"""{placeholder}: which models write this format, and how ({body}).

Format: derived from a chat template; TODO: its owner and address. Its SHA-256 is
{digest}::

{example}
"""

from __future__ import annotations

from dataclasses import replace

from adapter.parsing.bodies.format_compiler import compile_format
from adapter.parsing.format_spec import FormatSpec{pair_import}

DESCRIPTION = FormatSpec(
{settings}
)

FORMAT = replace(
    compile_format(DESCRIPTION),
    model_patterns=(),  # regular expressions for the names of the models
    template_fingerprints=({marks}),
)
'''


def generate_format_files(description: FormatSpec, name: str, source: str, digest: str) -> dict[str, str]:
    """Return the contents of the generated files by their path in this repository. ``source`` is the template's
    text."""
    description = replace(description, name=name)
    format = compile_format(description)
    example = description.encode_calls([("get_weather", {"city": "Oslo"})])
    known = {opener.marker for entry in FORMATS.values() for opener in entry.openers}
    marks = [opener.marker for opener in format.openers if opener.marker in source and opener.marker not in known][:1]
    settings = "\n".join(_format_setting(key, value) for key, value in list_changed_fields(description))
    module = _FILE.format(
        placeholder=PLACEHOLDER,
        body=f"calls as {description.body}",
        digest=digest,
        example="\n".join(f"    {line}".rstrip() for line in example.replace("\\", "\\\\").splitlines()),
        pair_import=", KeyValueLayout" if description.pairs is not None else "",
        settings=settings,
        marks="".join(f"{_format_literal(mark)}," for mark in marks),
    )
    cases = {
        f"fixtures/cases/{name}/{claim}.toml": _build_case(text, format, finish_reason)
        for claim, text, finish_reason in _list_texts(description)
    }
    return {f"adapter/parsing/formats/{name}.py": module, **cases}


def _format_setting(key: str, value: object, indent: str = "    ") -> str:
    """Return a field as ruff would format it: with one item per line if it is too long for one line."""
    line = f"{indent}{key}={_format_literal(value, indent)},"
    if len(line) <= WIDTH or not isinstance(value, tuple | list | dict):
        return line
    items = (
        [f"{_format_literal(key)}: {_format_literal(item)}" for key, item in value.items()]
        if isinstance(value, dict)
        else None
    )
    opening, closing = "()" if items is None else "{}"
    lines = [f"{indent}    {item}," for item in items or map(_format_literal, value)]
    return "\n".join([f"{indent}{key}={opening}", *lines, f"{indent}{closing},"])


def _format_literal(value: object, indent: str = "    ") -> str:
    """Return a literal as ruff would format it: one field per line, and double quotes unless they need more escapes."""
    match value:
        case str():
            quote = "'" if value.count('"') > value.count("'") else '"'
            return (
                quote + "".join(f"\\{c}" if c == quote else c if c in "'\"" else repr(c)[1:-1] for c in value) + quote
            )
        case tuple() | list():
            items = ", ".join(_format_literal(item, indent) for item in value)
            return f"({items},)" if len(value) == 1 else f"({items})"
        case dict():
            return (
                "{" + ", ".join(f"{_format_literal(key)}: {_format_literal(item)}" for key, item in value.items()) + "}"
            )
        case KeyValueLayout():
            inner = f"{indent}    "
            lines = [_format_setting(each.name, getattr(value, each.name), inner) for each in fields(value)]
            return "\n".join(["KeyValueLayout(", *lines, f"{indent})"])
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
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}},
        },
    ]
)


def _list_texts(description: FormatSpec) -> Iterator[tuple[str, str, str]]:
    """Yield the name, text and finish reason of each test case."""

    def encode(*calls: tuple[str, JsonObject]) -> str:
        return description.encode_calls(list(calls))

    def build_file(content: str) -> tuple[str, JsonObject]:
        return "write_file", {"path": "a.txt", "content": content}

    one = encode(_WEATHER)
    yield "one-call", one, "stop"
    yield "two-calls", encode(_WEATHER, _TIME), "stop"
    yield "call-after-text", f"I look.\n{one}", "stop"
    yield "no-arguments", encode(_TIME), "stop"
    yield "lines-and-quotes", encode(build_file('first\n  "second" \\n\nlast')), "stop"
    yield "other-scripts", encode(build_file("Ünï 漢字 🙂")), "stop"
    yield "an-empty-value", encode(build_file("")), "stop"
    yield "cut-in-a-value", one[: one.index("Oslo") + 2], "length"
    if description.ends:
        yield "end-token", one + description.ends[0], "stop"
    else:
        yield "text-alone", "Nothing to call.", "stop"


def _build_case(text: str, format: Format, finish_reason: str) -> str:
    turn = parse(text, TOOLS, format, finish_reason, generation_prompt="")
    return format_case(text, turn, finish_reason, source="derived from the chat template")
