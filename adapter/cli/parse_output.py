"""Print the result of `adapter parse`: the content, calls and repairs found in a file or a recorded exchange."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from adapter.cli.escaped_output import print_escaped
from adapter.cli.text_input import read_text
from adapter.core.errors import UsageError
from adapter.core.rejection_codes import REJECTION_REASONS
from adapter.core.text.display_escaping import dump_for_display

if TYPE_CHECKING:
    from pathlib import Path

    from adapter.core.turn import Turn
    from adapter.parsing.format import Format
    from adapter.protocols.recorded_exchange import RecordedExchange
    from adapter.tools.tool_set import ToolDefinitions


MAX_REASONS = 5
"""Maximum number of rejected calls that are listed for a text without calls."""

_NO_CALL_HINT = (
    "If you expected a call: --explain shows how each part of the text was parsed. `adapter derive TEMPLATE` infers "
    "the format from a chat template, and `adapter learn` from three examples."
)


_RESPONSE = re.compile(r"\s*(?:data:\s*)?\{[^{]{0,1000}\"(?:choices|message|output)\"\s*:\s*[\[{]")
_RESPONSE_HINT = (
    "This looks like the response of a server. Pass only the model's text, for example with `jq -r "
    "'.choices[0].message.content'`. `adapter serve` and `adapter.wrap` parse the responses themselves."
)


def print_parse_result(
    file: str = "-",
    *,
    format: str = "auto",
    template: Path | None = None,
    dialect: str = "blade",
    tools: str | None = None,
    include_tools: list[str] | None = None,
    exclude_tools: list[str] | None = None,
    finish_reason: str | None = None,
    policy: str = "safe",
    exchange: int | None = None,
    explain: bool = False,
    as_json: bool = False,
) -> None:
    """Parse ``file`` and print the result. Takes the command's arguments, and exits with 1 if no call is found."""
    from adapter.parsing.parser import parse

    if exchange is not None:
        others = (format, template, dialect, tools, include_tools, exclude_tools, finish_reason, policy)
        if [each for each in others if each] != ["auto", "blade", "safe"]:
            raise UsageError(
                "--exchange uses the recorded settings, and can be combined only with --explain and --json. To parse a "
                "recording with another --format or --policy, use `adapter view`"
            )
        turn = _find_exchange(file, exchange).parse_turn()
    else:
        known = _load_tools(dialect, tools, include_tools, exclude_tools)
        turn = parse(read_text(file), known, _resolve_format(format, template), finish_reason, policy=policy)
    if as_json:
        print(dump_for_display(_build_turn_json(turn) | (_build_spans_json(turn) if explain else {}), indent=2))
    elif explain:
        _print_spans(turn)
    else:
        print_escaped(_render_turn(turn))
    if not turn.calls:
        if not (as_json or explain) and turn.content:
            hint = _RESPONSE_HINT if _RESPONSE.match(turn.content) else _NO_CALL_HINT
            print_escaped(hint, to_stderr=True)
        raise SystemExit(1)


def _resolve_format(name: str, template: Path | None) -> str | Format | None:
    from adapter.parsing.formats import FROM_TEMPLATE

    if (name == FROM_TEMPLATE) != (template is not None):
        raise UsageError(f"--format {FROM_TEMPLATE} and --template FILE must be given together")
    if template is None:
        return None if name == "auto" else name
    from adapter.backends.format_derivation import derive

    return derive(template)


def _find_exchange(file: str, number: int) -> RecordedExchange:
    from adapter.protocols.recorded_exchange import read_exchanges

    exchanges = read_exchanges(read_text(file), file)
    if number > len(exchanges):
        raise UsageError(f"--exchange {number} is out of range: {file!r} has {len(exchanges)} exchanges")
    return exchanges[number - 1]


def _load_tools(
    dialect: str, file: str | None, include: list[str] | None, exclude: list[str] | None
) -> ToolDefinitions:
    if dialect == "promptly" or include or exclude:
        from adapter.cli.options import resolve_dialect

        return resolve_dialect(dialect, file if dialect == "promptly" else None, include, exclude).tools
    if file is not None:
        from adapter.cli.tool_definitions import read_tool_definitions

        return read_tool_definitions(file)
    from adapter.dialects import load_tools_for_parsing

    return load_tools_for_parsing(dialect)


def _build_turn_json(turn: Turn) -> dict[str, object]:
    return {
        "content": turn.content,
        "reasoning": turn.reasoning,
        "calls": [
            {"id": call.id, "name": call.name, "arguments": call.arguments, "fixes": list(call.fixes)}
            for call in turn.calls
        ],
        "invalid": [{"raw": invalid.raw, "error": invalid.error} for invalid in turn.invalid],
    }


def _build_spans_json(turn: Turn) -> dict[str, object]:
    from adapter.cli.span_table import build_span_rows

    return {"spans": build_span_rows(turn.explain())}


def _print_spans(turn: Turn) -> None:
    from rich.console import Console

    from adapter.cli.span_table import render_span_listing

    listing = render_span_listing(turn.explain())
    listing.rstrip()
    Console(highlight=False, soft_wrap=True).print(listing)


def _render_turn(turn: Turn) -> str:
    lines: list[str] = []
    for title, text in (("reasoning", turn.reasoning), ("content", turn.content)):
        if text.strip():
            lines += [f"{title}:", *(f"  {line}" for line in text.strip().split("\n"))]
    for call in turn.calls:
        lines += [f"call: {call.name}", f"  arguments: {json.dumps(call.arguments, ensure_ascii=False)}"]
        lines += [f"  fixes: {', '.join(call.fixes)}"] if call.fixes else []
    for invalid in turn.invalid:
        lines += [
            "not a call:",
            f"  text: {json.dumps(invalid.raw[:200], ensure_ascii=False)}",
            f"  why: {invalid.error}",
        ]
    if not turn.calls and not turn.invalid:
        lines.append("no call")
        text = "".join(event.raw for event in turn.events)
        lines += [
            f"  {json.dumps(text[each.start : each.end][:200], ensure_ascii=False)}: {REJECTION_REASONS[each.reason]}"
            for each in turn.rejected[:MAX_REASONS]
        ]
    return "\n".join(lines)
