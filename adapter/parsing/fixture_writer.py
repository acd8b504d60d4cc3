"""Write fixtures for parser tests: files in ``fixtures/cases`` with a text and its expected events."""

from __future__ import annotations

import json
from collections.abc import Sequence

from adapter.core.bounded_parsing import format_toml_literal
from adapter.core.events import (
    ContentReclassified,
    Event,
    InvalidToolCall,
    Json,
    MarkupDelta,
    ReasoningDelta,
    TextDelta,
    ToolCall,
)
from adapter.core.turn import Turn


def format_case(text: str, turn: Turn, finish_reason: str, source: str) -> str:
    """Return a parser test case as TOML: the input ``text``, and the events of ``turn`` as the expected result.
    ``source`` says where the text comes from."""
    claims = [claim for event in turn.events if (claim := _build_claim(event)) is not None]
    lines = [
        f"text = {format_toml_literal(text)}",
        "events = [",
        *(f"  {format_toml_literal(claim)}," for claim in claims),
        "]",
    ]
    lines.append(f"source = {format_toml_literal(source)}")
    if finish_reason != "stop":
        lines.append(f"finish_reason = {format_toml_literal(finish_reason)}")
    return "\n".join(lines) + "\n"


def _build_claim(event: Event) -> Sequence[Json] | None:
    match event:
        case TextDelta(text=text):
            return ["text", text]
        case ReasoningDelta(text=text):
            return ["reasoning", text]
        case MarkupDelta(raw=raw):
            return ["markup", raw]
        case ContentReclassified(raw=raw):
            return ["was-reasoning", raw]
        case ToolCall(name=name, arguments=arguments, fixes=fixes):
            return ["call", name, json.dumps(arguments, ensure_ascii=False), *([" ".join(fixes)] if fixes else [])]
        case InvalidToolCall(error=error):
            return ["invalid", error.partition(" before")[0]]
        case _:
            return None
