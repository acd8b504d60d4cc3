"""The drawings of docs/how_it_works.md: boxes and arrows as SVG, from ``python -m tests.generate --pictures``.

They have their own background, so that they look the same on light and dark pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "docs" / "drawings"
WIDTH, HEIGHT, ACROSS, DOWN, MARGIN = 180, 66, 70, 52, 24
"""Sizes of a box, between boxes, and around all of them, in pixels."""
FILLS = {"outside": "#eceff1", "reads": "#e3f2fd", "judges": "#fff8e1", "acts": "#e8f5e9"}
INK, FAINT = "#263238", "#607d8b"


@dataclass(frozen=True)
class Box:
    """A box at a position of the grid; ``kind`` is its color."""

    column: int
    row: int
    title: str
    about: str
    kind: str

    @property
    def left(self) -> int:
        return MARGIN + self.column * (WIDTH + ACROSS)

    @property
    def top(self) -> int:
        return MARGIN + self.row * (HEIGHT + DOWN)


@dataclass(frozen=True)
class Drawing:
    """``arrows``: names of neighboring boxes, and the label of the arrow."""

    title: str
    boxes: Mapping[str, Box]
    arrows: Sequence[tuple[str, str, str]]

    def svg(self) -> str:
        wide = max(box.left for box in self.boxes.values()) + WIDTH + MARGIN
        high = max(box.top for box in self.boxes.values()) + HEIGHT + MARGIN
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" '
            f'font-family="system-ui,sans-serif" font-size="13" fill="{INK}" text-anchor="middle" role="img">',
            f"<title>{escape(self.title)}</title>",
            f'<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
            f'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="{FAINT}"/></marker></defs>',
            f'<rect width="{wide}" height="{high}" rx="8" fill="#ffffff"/>',
        ]
        for start, end, label in self.arrows:
            parts.extend(arrow(self.boxes[start], self.boxes[end], label))
        for box in self.boxes.values():
            parts.extend(drawn(box))
        return "\n".join([*parts, "</svg>\n"])


def drawn(box: Box) -> Iterator[str]:
    middle = box.left + WIDTH / 2
    place = f'x="{box.left}" y="{box.top}" width="{WIDTH}" height="{HEIGHT}"'
    yield f'<rect {place} rx="6" fill="{FILLS[box.kind]}" stroke="{FAINT}"/>'
    yield f'<text x="{middle}" y="{box.top + 27}" font-weight="bold">{escape(box.title)}</text>'
    yield f'<text x="{middle}" y="{box.top + 47}" font-size="11.5" fill="{FAINT}">{escape(box.about)}</text>'


def arrow(start: Box, end: Box, label: str) -> Iterator[str]:
    if start.row == end.row:
        is_back = end.column < start.column
        x1, x2 = (start.left, end.left + WIDTH) if is_back else (start.left + WIDTH, end.left)
        y1 = y2 = start.top + HEIGHT // 2
        at = f'x="{(x1 + x2) / 2}" y="{y1 - 6}"'
    else:
        x1 = x2 = start.left + WIDTH // 2
        y1, y2 = (start.top + HEIGHT, end.top) if end.row > start.row else (start.top, end.top + HEIGHT)
        at = f'x="{x1 + 8}" y="{(y1 + y2) / 2 + 4}" text-anchor="start"'
    yield f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{FAINT}" marker-end="url(#tip)"/>'
    if label:
        yield f'<text {at} font-size="11" fill="{FAINT}">{escape(label)}</text>'


DRAWINGS = {
    "between": Drawing(
        "The server between a client and a model server",
        {
            "client": Box(0, 0, "Your client", "editor, agent, SDK", "outside"),
            "tools": Box(1, 0, "Tools in the prompt", "by the model's template", "reads"),
            "model": Box(2, 0, "Model server", "generates only text", "outside"),
            "calls": Box(1, 1, "Calls from the text", "every repair has a name", "reads"),
            "guard": Box(0, 1, "Guardrails", "retry, or pass on", "judges"),
            "read": Box(2, 1, "The model's own text", "streamed in chunks", "outside"),
        },
        [
            ("client", "tools", "tools"),
            ("tools", "model", "prompt"),
            ("model", "read", ""),
            ("read", "calls", "text"),
            ("calls", "guard", "calls"),
            ("guard", "client", "tool_calls"),
        ],
    ),
    "text": Drawing(
        "From chunks of text to a validated call",
        {
            "text": Box(0, 0, "Text", "whole, or in chunks", "outside"),
            "segment": Box(1, 0, "Segmenter", "answer, reasoning, markers", "reads"),
            "body": Box(2, 0, "Body parser", "JSON, pairs, elements ...", "reads"),
            "repair": Box(2, 1, "Repair", "only if unambiguous", "reads"),
            "match": Box(1, 1, "Tools", "names, aliases, types", "reads"),
            "verdict": Box(0, 1, "Decision", "a call, or a quotation?", "judges"),
            "turn": Box(0, 2, "Turn", "content, reasoning, calls", "outside"),
        },
        [
            ("text", "segment", ""),
            ("segment", "body", ""),
            ("body", "repair", "broken JSON"),
            ("repair", "match", ""),
            ("match", "verdict", ""),
            ("verdict", "turn", "events"),
        ],
    ),
    "turn": Drawing(
        "One turn of the agent",
        {
            "prompt": Box(0, 0, "Conversation", "past calls unchanged", "outside"),
            "model": Box(1, 0, "Model", "writes text", "outside"),
            "read": Box(2, 0, "Parser", "calls, or text", "reads"),
            "guard": Box(2, 1, "Guardrails", "usable? steps done?", "judges"),
            "ask": Box(1, 1, "Rules and you", "deny, allow, ask", "judges"),
            "act": Box(0, 1, "Workspace", "paths, sandbox, undo", "acts"),
        },
        [
            ("prompt", "model", ""),
            ("model", "read", ""),
            ("read", "guard", ""),
            ("guard", "ask", "calls"),
            ("ask", "act", "allowed"),
            ("act", "prompt", "results, shortened"),
        ],
    ),
}
