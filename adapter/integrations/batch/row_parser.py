"""Parse the model output in one row, and return its result columns.

::

    content     text
    reasoning   text
    tool_calls  a list of {"id", "type": "function", "function": {"name", "arguments"}}, arguments as JSON text
    fixes       the names of the repairs, in the order of the calls
    invalid     a list of {"raw", "error"} for invalid calls
    format      the format of the first call; "unmarked" for JSON without markers, "" without a call
    error       null, or the reason why the row could not be parsed; all other result columns are then null

An input column with one of these names is kept as ``input_<name>``.
"""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import lru_cache

from adapter.core.argument_checks import explain_read_error
from adapter.core.errors import AdapterError, UsageError
from adapter.core.events import Json, JsonObject, ToolCall
from adapter.parsing.call_format_detection import detect_call_format
from adapter.parsing.format import Format
from adapter.parsing.formats import FROM_TEMPLATE, get_format
from adapter.parsing.parse_policy import get_policy
from adapter.parsing.parser import parse
from adapter.tools.tool_set import ToolSet

COLUMNS = ("content", "reasoning", "tool_calls", "fixes", "invalid", "format", "error")


@dataclass(frozen=True, slots=True)
class RowSettings:
    """Settings for parsing rows. All of them are strings, so that they can be pickled and compared."""

    column: str = "text"
    """The model output, as a column name or a path (``response.choices.0.text``)."""
    format: str | None = None
    """Format name, or None for auto-detection."""
    template: str = ""
    """Text of the chat template. If ``format`` is ``from-template``, the format is derived from it."""
    policy: str = "safe"
    tools: str = "[]"
    """Tool definitions as a JSON list."""
    tools_column: str | None = None
    """Column with the tools of each row."""
    finish_reason: str = "finish_reason"
    """Column with the finish reasons, or None."""
    prompt: str | None = None
    """Column with the prompts, which end with the template's generation prompt, or None."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all input columns."""
        return tuple(filter(None, (self.column, self.tools_column, self.finish_reason, self.prompt)))


class RowParser:
    """Parses the model outputs in rows. Raises UsageError if the settings are invalid."""

    def __init__(self, settings: RowSettings) -> None:
        get_policy(settings.policy)
        self.settings = settings
        self._format = _format_of(settings)
        self._tools = _parse_tools(settings.tools)

    def build_columns(self, row: JsonObject) -> JsonObject:
        """Return the values of all `COLUMNS` for ``row``. Errors are not raised, but returned in the column
        ``error``."""
        settings = self.settings
        try:
            tools = self._tools if settings.tools_column is None else _parse_tools_column(row, settings.tools_column)
            finish_reason = get_nested(row, settings.finish_reason)
            prompt = get_nested(row, settings.prompt) if settings.prompt else None
            turn = parse(
                _get_text(row, settings.column),
                tools,
                self._format,
                finish_reason if isinstance(finish_reason, str) else None,
                generation_prompt=prompt if isinstance(prompt, str) else None,
                policy=settings.policy,
            )
        except (AdapterError, ValueError, RecursionError, MemoryError) as error:
            return build_error_columns(str(error) or type(error).__name__)
        return {
            "content": turn.content,
            "reasoning": turn.reasoning,
            "tool_calls": to_openai_tool_calls(turn.calls),
            "fixes": [fix for call in turn.calls for fix in call.fixes],
            "invalid": [{"raw": invalid_call.raw, "error": invalid_call.error} for invalid_call in turn.invalid],
            "format": detect_call_format(turn, tuple(tools), self._format),
            "error": None,
        }


def build_error_columns(message: str) -> JsonObject:
    """Return the result columns of a row that cannot be parsed."""
    return {**dict.fromkeys(COLUMNS), "error": message}


def to_openai_tool_calls(calls: Sequence[ToolCall]) -> list[Json]:
    """Return calls as OpenAI's ``tool_calls``, with the arguments as JSON text."""
    return [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
        }
        for call in calls
    ]


def build_unique_column_name(name: str, others: Container[str]) -> str:
    """Return the name of an input column in the output: ``name``, or a new one if it conflicts with a result column.
    ``others`` has the names of all input columns."""
    while name in COLUMNS:
        name = f"input_{name}"
        while name in others:
            name = f"input_{name}"
    return name


def get_nested(row: Json, path: str) -> Json:
    """Return the value at ``path`` (a key, or keys and list indexes separated by dots), or None if there is none."""
    if isinstance(row, dict) and path in row:
        return row[path]
    for key in path.split("."):
        if isinstance(row, dict):
            row = row.get(key)
        elif isinstance(row, list) and key.isdecimal() and int(key) < len(row):
            row = row[int(key)]
        else:
            return None
    return row


def _get_text(row: JsonObject, column: str) -> str:
    text = get_nested(row, column)
    if not isinstance(text, str):
        raise UsageError(
            f"column {column!r} must be text, got {_shorten(text)}; the row has columns: {', '.join(row) or 'none'}"
        )
    return text


def _parse_tools_column(row: JsonObject, column: str) -> ToolSet:
    """Return the tools in a column, which has JSON text or a list. Nulls are removed from a list, because Parquet adds
    them for missing keys."""
    settings = get_nested(row, column)
    if settings is None:
        return _NO_TOOLS
    text = settings if isinstance(settings, str) else json.dumps(_remove_nulls(settings))
    return _parse_tools(text)


_NO_TOOLS = ToolSet()


@lru_cache(maxsize=256)
def _parse_tools(text: str) -> ToolSet:
    """Parse a JSON list of tool definitions. Raises UsageError if it is invalid."""
    try:
        settings = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the tools are not valid JSON ({explain_read_error(error)}): {_shorten(text)}") from error
    if not isinstance(settings, list) or not all(isinstance(item, dict) for item in settings):
        raise UsageError(f"the tools must be a JSON list of definitions, got {_shorten(settings)}")
    return ToolSet(settings)


def _remove_nulls(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _remove_nulls(item) for key, item in value.items() if item is not None}
    return [_remove_nulls(item) for item in value] if isinstance(value, list) else value


def _format_of(settings: RowSettings) -> Format | None:
    if settings.format != FROM_TEMPLATE:
        return None if settings.format is None else get_format(settings.format)
    from adapter.backends.format_derivation import derive

    return derive(settings.template)


def _shorten(value: Json) -> str:
    return "nothing" if value is None else repr(value)[:60]
