"""List the spans of a parsed answer, with their kind, position, text and remarks.

A span is a part of the answer: content, reasoning, markup, a call or an invalid call. Remarks explain repairs and
errors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from rich.text import Text

from adapter.core.rejection_codes import REJECTION_REASONS
from adapter.core.repair_codes import REPAIRS
from adapter.core.text.display_escaping import escape_for_display
from adapter.core.turn import Span

STYLES = {"content": "", "reasoning": "blue", "markup": "dim", "call": "green", "invalid": "red"}
MARGIN = 25
"""Total width of the columns before a span's text (kind and position), in characters."""


def render_span_listing(spans: Sequence[Span]) -> Text:
    """Render the spans in order. Each has the color of its kind, and is followed by its remarks."""
    listing = Text()
    for span in spans:
        head = f"{span.kind:<10} {f'{span.start}-{span.end}':<{MARGIN - 12}} "
        for number, line in enumerate(re.findall(r"[^\n]*\n|[^\n]+", span.text)):
            listing.append(head if number == 0 else " " * MARGIN, style="bold")
            listing.append(escape_for_display(line.rstrip("\n"), keep="\t"), style=STYLES[span.kind])
            listing.append("↵\n" if line.endswith("\n") else "\n", style="dim")
        for remark in _list_remarks(span):
            listing.append(f"{' ' * MARGIN}{remark}\n", style="yellow")
    return listing


def build_span_rows(spans: Sequence[Span]) -> list[dict[str, object]]:
    """Return each span as a JSON object, for `adapter parse --json`."""
    return [
        {
            "kind": span.kind,
            "start": span.start,
            "end": span.end,
            "text": span.text,
            "name": span.call.name if span.call else None,
            "fixes": {fix: REPAIRS[fix] for fix in span.call.fixes} if span.call else {},
            "error": span.error,
            "rejected": [
                {"start": each.start, "end": each.end, "reason": each.reason, "why": REJECTION_REASONS[each.reason]}
                for each in span.rejected
            ],
        }
        for span in spans
    ]


def _list_remarks(span: Span) -> Iterator[str]:
    if span.call is not None:
        yield escape_for_display(f"= {span.call.name}({json.dumps(span.call.arguments, ensure_ascii=False)})")
        for fix in span.call.fixes:
            yield f"* {fix}: {REPAIRS[fix]}"
    if span.error is not None:
        yield from (f"! {escape_for_display(line)}" for line in span.error.split("\n"))
    for each in span.rejected:
        yield f"- rejected call at {each.start}-{each.end}: {REJECTION_REASONS[each.reason]}"
