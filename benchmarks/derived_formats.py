"""Compare formats that are derived from chat templates with the built-in ones, and time the derivation.

    python -m benchmarks.derived_formats FOLDER [--held-out | --seen]

``FOLDER`` has chat templates (``*.jinja``). Each template that writes calls renders the calls in `CALLS`, which the
derivation does not use, alone and after words. They are parsed with the derived format and with the built-in one, whole
and character by character. ``--held-out``: only the third of the templates that was not used in development.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from adapter.backends.format_derivation import detect_format, examine_template
from adapter.core.events import JsonObject
from adapter.core.turn import Turn
from adapter.parsing.format import Format
from adapter.parsing.formats import get_format, guess_format
from adapter.parsing.parser import Parser
from adapter.prompting.chat_template import ChatTemplate, ChatTemplateError, render_chat_template
from adapter.prompting.deriving.derive_format import derive_format
from adapter.prompting.deriving.probe_conversations import BOS, EOS, RenderedConversations, detect_conventions
from adapter.tools.tool_set import ToolSet

TOOLS = ToolSet(
    [
        {
            "name": "save_note",
            "parameters": {
                "type": "object",
                "properties": {
                    "title": {"type": "string"},
                    "text": {"type": "string"},
                    "stars": {"type": "integer"},
                    "share": {"type": "number"},
                    "draft": {"type": "boolean"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "place": {"type": "object"},
                },
            },
        },
        {"name": "list_notes", "parameters": {"type": "object", "properties": {}}},
    ]
)
Calls = list[tuple[str, JsonObject]]
CODE = 'def f(a, b="x"):\n    """Doc \'it\'."""\n\n    return {"a": [a], b: "\\n"}\n'
MARKUP = '<p class="x">it\'s 5 < 6</p>\n\n```json\n{"name": 1}\n```'
TYPED: JsonObject = {"stars": 4, "share": 0.125, "draft": True, "tags": ["a b", "c"], "place": {"x": [1]}}
CALLS: Mapping[str, Calls] = {
    "plain": [("save_note", {"title": "Milk", "text": "Two bottles of it."})],
    "typed": [("save_note", {"title": "T", **TYPED})],
    "none": [("list_notes", {})],
    "parallel": [("save_note", {"title": "One"}), ("list_notes", {}), ("save_note", {"title": "Two", "stars": 2})],
    "code": [("save_note", {"title": "f.py", "text": CODE})],
    "markup": [("save_note", {"title": "<h1>A & B</h1>", "text": MARKUP})],
    "other scripts": [("save_note", {"title": "ñ 漢字 🙂", "text": "\u00e5\u2028ж"})],
    "like types": [("save_note", {"title": "007", "text": "false"})],
    "empty": [("save_note", {"title": "", "text": "x"})],
}


@dataclass(frozen=True)
class Row:
    """Results of one template. The derived format parses ``right`` of ``asked`` calls, a built-in one
    ``table_right``."""

    name: str
    told: str
    table: str
    why: str
    right: int = 0
    asked: int = 0
    table_right: int | None = None
    milliseconds: float = 0.0
    missed: tuple[str, ...] = ()


def is_held_out(file: Path) -> bool:
    return int(sha256(file.name.encode()).hexdigest()[:8], 16) % 3 == 0


def row_of(file: Path) -> Row:
    source = file.read_text(encoding="utf-8")
    begun = time.perf_counter()
    found = examine_template(ChatTemplate(source))
    milliseconds = (time.perf_counter() - begun) * 1000
    told = detect_format(source)
    table = guess_format(None, source)
    if found.format is None and not found.samples:
        return Row(file.stem, "none", told.format or "any", found.why, milliseconds=milliseconds)
    right, table_right, asked, missed = 0, 0, 0, []
    for what, content, calls, text in written_by(source):
        asked += 1
        if found.format is not None and is_right(text, found.format, content, calls):
            right += 1
        else:
            missed.append(what)
        table_right += table is not None and is_right(text, get_format(table), content, calls)
    body = found.description.body if found.description is not None and found.format is not None else "none"
    return Row(
        file.stem, body, (told.format or "any") if told.by != "template" else "derived", found.why, right, asked,
        table_right if table is not None else None, milliseconds, tuple(missed),
    )  # fmt: skip


def written_by(source: str) -> Iterator[tuple[str, str, Calls, str]]:
    template = ChatTemplate(source, {"bos_token": BOS, "eos_token": EOS})
    variables: dict[str, Any] = {}

    def fill(messages: Sequence[JsonObject], tools: Sequence[Any], opened: bool) -> str | None:
        given = [tool.to_openai() for tool in TOOLS.values()] if tools else []
        for _ in range(3):
            try:
                return render_chat_template(
                    template, messages, given, add_generation_prompt=opened, variables=variables
                )
            except ChatTemplateError as fault:
                if not str(fault).endswith("' is undefined"):
                    return None
                variables[str(fault).split("'")[1]] = json.dumps(given)
        return None

    found = derive_format(fill, "template_benchmark")
    frame, conventions = found.frame, detect_conventions(fill)
    if frame is None or conventions is None:
        return
    conversations = RenderedConversations(fill, conventions)
    for what, calls in CALLS.items():
        for content in ("", "I do it now."):
            text = conversations.render_calls(calls, content or None)
            if text is None or content not in text or _is_short(text, content, calls):
                continue
            start = len(frame.prefix) if not content else text.index(content)
            yield (
                f"{what}{' after words' if content else ''}",
                content,
                calls,
                text[start : len(text) - len(frame.suffix)],
            )


def _is_short(text: str, content: str, calls: Calls) -> bool:
    after = text.partition(content)[2] if content else text
    return any(after.count(name) < [each for each, _ in calls].count(name) for name, _ in calls)


def is_right(text: str, format: Format, content: str, calls: Calls) -> bool:
    return all(
        (turn := read(pieces, format, TOOLS)).content.strip() == content
        and not turn.invalid
        and [(call.name, call.arguments) for call in turn.calls] == calls
        for pieces in ([text], list(text))
    )  # fmt: skip


def read(
    pieces: Sequence[str], format: Format, tools: ToolSet, *, finish_reason: str = "stop", prompt: str | None = ""
) -> Turn:
    parser = Parser(format, tools, policy="approved", generation_prompt=prompt)
    events = [event for piece in pieces for event in parser.feed(piece)]
    return Turn.from_events([*events, *parser.close(finish_reason)])


def table(rows: Sequence[Row]) -> str:
    lines = [
        "| template | derived as | texts right | by its table | taken | ms | why not, what was missed |",
        "|---|---|--:|--:|---|--:|---|",
    ]
    for row in rows:
        right = f"{row.right} of {row.asked}" if row.told != "none" else "-"
        beside = f"{row.table_right} of {row.asked}" if row.table_right is not None and row.asked else "-"
        why = row.why or ", ".join(row.missed)
        lines.append(
            f"| {row.name} | {row.told} | {right} | {beside} | {row.table} | {row.milliseconds:.0f} | {why[:300]} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--seen", action="store_true")
    options = parser.parse_args()
    files = sorted(options.folder.glob("*.jinja"))
    if options.held_out or options.seen:
        files = [file for file in files if is_held_out(file) == options.held_out]
    print(table([row_of(file) for file in files]))


if __name__ == "__main__":
    main()
