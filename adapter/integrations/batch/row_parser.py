"""One row: the columns that reading a model's output adds to it.

::

    content     text
    reasoning   text
    tool_calls  a list of {"id", "type": "function", "function": {"name", "arguments"}}, arguments as JSON text
    fixes       the names of the repairs, in the order of the calls
    invalid     a list of {"raw", "error"}: what was meant as a call and is none
    format      how the first call is written: a format's name, "unmarked" for JSON without markers; "" without a call
    error       why the row could not be read: then all the others are null; else null

An input column of one of these names is kept as ``input_<name>``.
"""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import lru_cache

from adapter.core.arguments import reason
from adapter.core.errors import AdapterError, UsageError
from adapter.core.events import InvalidToolCall, Json, JsonObject, ToolCall
from adapter.core.turn import Turn
from adapter.parsing.format import Format
from adapter.parsing.formats import FORMATS, FROM_TEMPLATE, get_format
from adapter.parsing.parse_policy import get_policy
from adapter.parsing.parser import parse
from adapter.tools.tool import ToolSet

COLUMNS = ("content", "reasoning", "tool_calls", "fixes", "invalid", "format", "error")
UNMARKED = "unmarked"


@dataclass(frozen=True, slots=True)
class RowSettings:
    """How rows are read; texts only, so that it can be sent to other processes, and told from another's.

    ``column``: what the model wrote, as a column's name or a path in it (``response.choices.0.text``).
    ``format``: a name, or None for any. ``template``: the chat template's text, for ``from-template``.
    ``tools``: definitions as a JSON list; ``tools_column``: where rows have their own. ``finish_reason``, ``prompt``:
    columns that may be missing; the prompt is what the answer follows, with the template's last words.
    """

    column: str = "text"
    format: str | None = None
    template: str = ""
    policy: str = "safe"
    tools: str = "[]"
    tools_column: str | None = None
    finish_reason: str = "finish_reason"
    prompt: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """All that are read of a row."""
        return tuple(filter(None, (self.column, self.tools_column, self.finish_reason, self.prompt)))


class RowParser:
    """Reads rows. Raises UsageError for settings that no row could be read by; `columns` raises nothing."""

    def __init__(self, settings: RowSettings) -> None:
        get_policy(settings.policy)
        self.settings = settings
        self._format = _format_of(settings)
        self._tools = _tools_of(settings.tools)

    def columns(self, row: JsonObject) -> JsonObject:
        """All of `COLUMNS` for ``row``."""
        given = self.settings
        try:
            tools = self._tools if given.tools_column is None else _tools_in(row, given.tools_column)
            finish_reason = get_nested(row, given.finish_reason)
            prompt = get_nested(row, given.prompt) if given.prompt else None
            turn = parse(
                _text_in(row, given.column),
                tools,
                self._format,
                finish_reason if isinstance(finish_reason, str) else None,
                generation_prompt=prompt if isinstance(prompt, str) else None,
                policy=given.policy,
            )
        except (AdapterError, ValueError, RecursionError, MemoryError) as error:
            return error_columns(str(error) or type(error).__name__)
        return {
            "content": turn.content,
            "reasoning": turn.reasoning,
            "tool_calls": to_openai_tool_calls(turn.calls),
            "fixes": [fix for call in turn.calls for fix in call.fixes],
            "invalid": [{"raw": wrong.raw, "error": wrong.error} for wrong in turn.invalid],
            "format": detect_call_format(turn, tuple(tools), self._format),
            "error": None,
        }


def error_columns(why: str) -> JsonObject:
    """The columns of a row that could not be read."""
    return {**dict.fromkeys(COLUMNS), "error": why}


def to_openai_tool_calls(calls: Sequence[ToolCall]) -> list[Json]:
    return [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
        }
        for call in calls
    ]


def unique_column_name(name: str, others: Container[str]) -> str:
    """What an input's column is called beside ours. ``others``: the input's columns."""
    while name in COLUMNS:
        name = f"input_{name}"
        while name in others:
            name = f"input_{name}"
    return name


def get_nested(row: Json, path: str) -> Json:
    """What stands under ``path``, a key or keys and list places with dots between; None where nothing does."""
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


def _text_in(row: JsonObject, column: str) -> str:
    text = get_nested(row, column)
    if not isinstance(text, str):
        raise UsageError(f"column {column!r} holds {_short(text)}, no text; the row has {', '.join(row) or 'nothing'}")
    return text


def _tools_in(row: JsonObject, column: str) -> ToolSet:
    """Those of the row: JSON text, or a list, in which Parquet puts a null for every key that another row has."""
    given = get_nested(row, column)
    if given is None:
        return _NO_TOOLS
    text = given if isinstance(given, str) else json.dumps(_without_nulls(given))
    return _tools_of(text)


_NO_TOOLS = ToolSet()


@lru_cache(maxsize=256)
def _tools_of(text: str) -> ToolSet:
    """Raises UsageError for what is no JSON list of tool definitions."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the tools are no JSON ({reason(error)}): {_short(text)}") from error
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise UsageError(f"the tools must be a JSON list of definitions, got {_short(given)}")
    return ToolSet(given)


def _without_nulls(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def _format_of(settings: RowSettings) -> Format | None:
    if settings.format != FROM_TEMPLATE:
        return None if settings.format is None else get_format(settings.format)
    from adapter.backends.template_detection import derive

    return derive(settings.template)


def _short(value: Json) -> str:
    return "nothing" if value is None else repr(value)[:60]


# ------------------------------------------------------------------ the format that a text is written in


def detect_call_format(turn: Turn, names: tuple[str, ...], told: Format | None = None) -> str:
    """The format that the first call is written in: of those whose marker opens it, the one that begins most like it.

    ``told``, else ``unmarked``, where no marker opens it; "" without a call.
    """
    first = next((event for event in turn.events if isinstance(event, ToolCall | InvalidToolCall)), None)
    if first is None:
        return ""
    return _format_by(_lead(first.raw, first.name or ""), names, told)


MAX_LEAD = 80
"""Characters before a call's name, without white space: but for one, none of the formats has more than 60."""
_PROBE = "zqname"


def _lead(raw: str, name: str) -> str:
    """What stands before the name, without white space."""
    before = raw[:200].partition(name)[0] if name else raw[:200]
    return "".join(before.split()).lower()[:MAX_LEAD]


@lru_cache(maxsize=4096)
def _format_by(lead: str, names: tuple[str, ...], told: Format | None) -> str:
    found, best = told.name if told else UNMARKED, (0, 0)
    for entry in (*([told] if told else ()), *FORMATS.all):
        openers = (*entry.openers, *(entry.openers_for(names) if entry.openers_for else ()))
        markers = ("".join(opener.marker.split()).lower() for opener in openers)
        opened = max((len(marker) for marker in markers if marker and lead.startswith(marker)), default=0)
        if opened and (likeness := (_shared(lead, _own_lead(entry)), opened)) > best:
            found, best = entry.name, likeness
    return found


@lru_cache(maxsize=256)
def _own_lead(entry: Format) -> str:
    return _lead(entry.encode_calls([(_PROBE, {})]), _PROBE)


def _shared(one: str, other: str) -> int:
    """How many characters both begin with; all the more where that is all of both."""
    if one == other:
        return MAX_LEAD + 1
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
