"""How often the second try of an edit succeeds after a refusal, by what the refusal says.

    python -m benchmarks.second_try [--per-kind N] [--seed N] [--sources DIR] [--model [MODEL.gguf]]

A *scripted* model does literally what the message says: it takes the lines that
are shown for its old text, makes its change in them, or passes the line that is
listed nearest to where it read the text. The first tries are those edits of
`benchmarks.traps` that have one right answer and are refused.

A *real* small model (``--model``) is shown a request, its own first call with a
misremembered line, and the refusal: once only that the text was not found, once
the message of this project. Its calls are kept valid by a grammar, as in
`benchmarks.small_models`.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from adapter.backends.chat_client import ChatClient, Message, constraint_fields
from adapter.backends.embedded_server import EmbeddedServer, download_builtin_model
from adapter.core.errors import EditError
from adapter.core.events import Json, JsonObject
from adapter.core.text.diffs import changes
from adapter.editing import patch_text
from adapter.tools.tool import ToolSet
from benchmarks.corruptions import Case
from benchmarks.small_models import HERE, KINDS, MAX_STRING, MAX_TOKENS, conversation
from benchmarks.traps import cases

MIN_ALIKE = 0.6
_SHOWN = re.compile(r"^(\d+): (.*)$", re.MULTILINE)
_LISTED = re.compile(r"(?:lines?|places) \(?(?:lines )?(\d+(?:, \d+)*)")
BARE = "old_text was not found. Nothing was changed."


# ------------------------------------------------------------------ the scripted model


def scripted(chosen: Sequence[Case], random: Random) -> None:
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for case in chosen:
        first = refusal(case.text, case.patches[0])
        if case.expected is None or len(case.patches) > 1 or first is None:
            continue
        table[case.kind][_second(case, first, random)] += 1
    print(
        f"{'scripted: first refused':24} {'refused':>7} {'mended':>7} {'refused again':>13} {'wrong':>6} {'no idea':>7}"
    )
    for kind, count in [*table.items(), ("all", sum(table.values(), Counter()))]:
        cells = f"{count['mended']:7} {count['refused']:13} {count['wrong']:6} {count['no idea']:7}"
        print(f"{kind:24} {count.total():7} {cells}")


def _second(case: Case, message: str, random: Random) -> str:
    patch = followed(case, message, random)
    if patch is None:
        return "no idea"
    try:
        text = patch_text(case.text, [patch]).text
    except EditError:
        return "refused"
    return "mended" if text == case.expected else "wrong"


def refusal(text: str, patch: dict[str, Json]) -> str | None:
    try:
        patch_text(text, [patch])
    except EditError as error:
        return str(error)
    return None


def followed(case: Case, message: str, random: Random) -> dict[str, Json] | None:
    """The patch that the message asks for, or None where the model cannot do as it says."""
    patch = case.patches[0]
    shown = _SHOWN.findall(message)
    if shown and "... to line" not in message:
        lines = [line for _, line in shown]
        carried = _carried_over(str(patch["old_text"]).split("\n"), str(patch["new_text"]).split("\n"), lines)
        if carried is not None:
            return {**patch, "old_text": "\n".join(lines), "new_text": "\n".join(carried)}
    listed = _LISTED.search(message)
    if "start_line" in message and listed:
        read_at = _changed_line(case) + random.randint(-5, 5)
        places = [int(place) for place in listed[1].split(", ")]
        return {**patch, "start_line": min(places, key=lambda place: abs(place - read_at))}
    return None


def _changed_line(case: Case) -> int:
    """Where the edit belongs, which the model knows about."""
    before, after = case.text.split("\n"), (case.expected or "").split("\n")
    return next((n for n, (a, b) in enumerate(zip(before, after, strict=False), 1) if a != b), len(before))


def _carried_over(old: Sequence[str], new: Sequence[str], lines: Sequence[str]) -> list[str] | None:
    """The change from ``old`` to ``new`` made in ``lines``: each removed line is the one most like it."""
    result = list(lines)
    for start, stop, new_start, new_stop in reversed(changes(old, new)):
        first = _like(old[start], lines) if start < stop else _after(old[:start], lines)
        if first is None or first + stop - start > len(lines):
            return None
        result[first : first + stop - start] = new[new_start:new_stop]
    return result


def _like(wanted: str, lines: Sequence[str]) -> int | None:
    alike = [difflib.SequenceMatcher(None, wanted.strip(), line.strip()).ratio() for line in lines]
    best = max(alike, default=0.0)
    return alike.index(best) if best >= MIN_ALIKE and alike.count(best) == 1 else None


def _after(above: Sequence[str], lines: Sequence[str]) -> int | None:
    at = _like(above[-1], lines) if above else -1
    return None if at is None else at + 1


# ---------------------------------------------------------------------- the real model


def real(model: str | None) -> None:
    task = json.loads((HERE / "edits.json").read_text())
    tools = ToolSet(task["tools"])
    rows = [(space["files"], row) for space in task["workspaces"] for kind in KINDS for row in space[kind]]
    with EmbeddedServer(model or download_builtin_model()) as server, ChatClient(server.endpoint) as client:
        for says in ("not found", "this project's message"):
            count: Counter[str] = Counter()
            for files, row in rows:
                count[_real_second(client, tools, files, row, says == "not found")] += 1
            print(f"{says:48} {count.total():3} refused, {count['mended']:3} mended", dict(count), flush=True)


def _real_second(client: ChatClient, tools: ToolSet, files: dict[str, str], row: JsonObject, bare: bool) -> str:
    text = files[row["path"]]
    line = next(line for line in text.split("\n") if row["absent"].strip() in line)
    first = {"old_text": _misremembered(line), "new_text": _misremembered(line).replace(row["absent"].strip(), "it")}
    message = refusal(text, dict(first))
    if message is None:
        return "not refused"
    call = json.dumps({"name": "apply_edit", "arguments": {"path": row["path"], **first}}, ensure_ascii=False)
    messages: list[Message] = [
        *conversation(tools, row["request"]),
        {"role": "assistant", "content": f"<tool_call>\n{call}\n</tool_call>"},
        {"role": "user", "content": f"<tool_response>\n{BARE if bare else message}\n</tool_response>"},
    ]
    constraint = constraint_fields(client.endpoint.kind, tools, max_string=MAX_STRING, max_text=MAX_STRING)
    answer = client.stream(messages, temperature=0.0, seed=1, max_tokens=MAX_TOKENS, extra=constraint)
    return _judged("".join(chunk.text for chunk in answer), row, text)


def _misremembered(line: str) -> str:
    """The line with another word in front, which no tolerance takes for a slip."""
    return f"previously_{line.strip()}"


def _judged(said: str, row: JsonObject, text: str) -> str:
    try:
        call = json.loads(said.strip().removeprefix("<tool_call>").removesuffix("</tool_call>"))
        arguments = call["arguments"]
    except (ValueError, KeyError):
        return "no call"
    if call["name"] != "apply_edit":
        return f"calls {call['name']}"
    if arguments.get("path") != row["path"]:
        return "another file"
    try:
        edited = patch_text(text, [{key: arguments[key] for key in ("old_text", "new_text")}]).text
    except EditError:
        return "refused again"
    return "mended" if row["present"] in edited and row["absent"] not in edited else "another edit"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--per-kind", type=int, default=60)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--sources", type=Path, nargs="*", default=[], help="folders with more files")
    parser.add_argument("--model", nargs="?", const="", help="a GGUF file; the built-in model when none is named")
    options = parser.parse_args()
    if options.model is not None:
        real(options.model or None)
        return
    random = Random(options.seed)
    chosen = cases(options.seed, options.per_kind, held_out=True, roots=options.sources)
    scripted([*chosen, *(_without_hint(case) for case in chosen if case.kind == "duplicates, hint")], random)


def _without_hint(case: Case) -> Case:
    patch = {key: value for key, value in case.patches[0].items() if key != "start_line"}
    return replace(case, kind="ambiguous", patches=[patch])


if __name__ == "__main__":
    main()
