"""In which words a model is best told how to call, where nothing but a prompt in words reaches it.

    python -m benchmarks.wordings [MODEL.gguf] [--base-url URL] [--style NAME ...] [--wording NAME ...] [--every N]
        [--results FILE]

Each style of prompt with each of `WORDINGS`: no constraint, no help for small models, temperature 0. Asked are the
requests of ``requests.json`` and the building half of ``choices.json``, counted as `benchmarks.choices` does. The last
column compares with the present words, request by request: how many more and how many fewer were served (the right
calls, or none where none was wanted), and how probable at least that difference is by chance (a sign test).
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from adapter.backends.chat_client import ChatClient
from adapter.backends.embedded_server import EmbeddedServer, download_builtin_model
from adapter.backends.endpoint_discovery import find_endpoint
from benchmarks.choices import HEADINGS, HERE, Answered, Case, Results, Way, cases, is_right, row

MAX_TOKENS = 80
"""Of an answer: the longest right call takes about 60."""
PRESENT = "present"
STYLES = ("trained", "compact", "full", "args")
WORDINGS = {
    PRESENT: None,
    "as trained": """
For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>
""",
    "decide first": """
Where one of these tools does what is asked, answer with its call and nothing else: its name and arguments as one JSON
object between the tags, with values from the request.
{{ example.call }}
Where none does, answer in words. The result comes back to you: never write one yourself.
""",
    "an exchange": """
To call a tool, write its name and arguments as one JSON object between the tags, and stop. Somebody says:
{{ example.request }}
You write:
{{ example.call }}
The result comes back to you. Use only the tools above, with real values, and never write a result yourself.
""",
}
"""How a call is written, in the place of ``prompts/formats/hermes.md``. The second are the words of Hermes' and Qwen's
own templates."""


def requests(every: int = 1) -> list[Case]:
    """Each ``every``-th."""
    task = json.loads((HERE / "requests.json").read_text(encoding="utf-8"))
    wanted = [(each["request"], each["expect"]) for each in task["requests"]]
    found = [
        Case("a workspace", request, task["tools"], [{**call, "arguments": _each_alone(call["arguments"])}])
        for request, call in wanted
    ]
    return [*found, *cases(["build"])][::every]


def _each_alone(arguments: dict[str, object]) -> dict[str, list[object]]:
    return {name: [value] for name, value in arguments.items()}


def ways(styles: Sequence[str], wordings: Sequence[str], folder: Path) -> list[Way]:
    """``folder``: where the templates are written."""
    made = []
    for wording in wordings:
        text, place = WORDINGS[wording], folder / wording
        if text is not None:
            (place / "formats").mkdir(parents=True)
            (place / "formats" / "hermes.md").write_text(text.lstrip(), encoding="utf-8")
        prompts = None if text is None else str(place)
        made += [Way(f"{style}, {wording}", "off", style, prompts) for style in styles]
    return made


def answered(
    asked: Sequence[Case], style: Sequence[Way], results: Results, client: ChatClient
) -> dict[str, list[Answered]]:
    """The answers by way. One set of tools after another: its description is read once for all wordings behind it."""
    made: dict[str, list[Answered]] = {way.name: [] for way in style}
    for _, group in groupby(asked, key=lambda case: case.group):
        cases = list(group)
        for way in style:
            made[way.name] += [results.get(way, case, client) for case in cases]
    return made


def is_served(case: Case, answered: Answered) -> bool:
    return is_right(case, answered.calls) if case.calls else not answered.calls


def chance(more: int, fewer: int) -> float:
    """How probable a difference of at least this is where both are alike: a sign test, of both sides."""
    of = more + fewer
    tail = sum(math.comb(of, least) for least in range(min(more, fewer) + 1))
    return min(1.0, 2 * tail / 2.0**of)


def compared(asked: Sequence[Case], present: Sequence[Answered], other: Sequence[Answered]) -> str:
    pairs = [
        (is_served(case, before), is_served(case, after))
        for case, before, after in zip(asked, present, other, strict=True)
    ]
    more, fewer = pairs.count((False, True)), pairs.count((True, False))
    return f"+{more} -{fewer}, {chance(more, fewer):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("model", nargs="?", help="a GGUF file; default: the built-in model")
    parser.add_argument("--base-url", help="a running server instead")
    parser.add_argument("--style", nargs="*", default=STYLES, choices=STYLES)
    parser.add_argument("--wording", nargs="*", default=list(WORDINGS), choices=list(WORDINGS))
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each N-th request")
    parser.add_argument("--results", type=Path, help="keep the answers here, and go on from those that are there")
    options = parser.parse_args()
    asked, results = requests(options.every), Results(options.results, MAX_TOKENS)
    table = Table("way", *HEADINGS, "beside the present")
    with ExitStack() as stack:
        if options.base_url:
            endpoint = find_endpoint(options.base_url)
        else:
            endpoint = stack.enter_context(EmbeddedServer(options.model or download_builtin_model())).endpoint
        client = stack.enter_context(ChatClient(endpoint))
        folder = Path(stack.enter_context(TemporaryDirectory()))
        made = ways(options.style, options.wording, folder)
        for style in options.style:
            of_style = [way for way in made if way.style == style]
            answers = answered(asked, of_style, results, client)
            for way in of_style:
                present = answers.get(f"{style}, {PRESENT}")
                beside = compared(asked, present, answers[way.name]) if present and way.prompts else ""
                cells = [*row(way, list(zip(asked, answers[way.name], strict=True))), beside]
                print(json.dumps(cells), flush=True)
                table.add_row(*cells)
    Console(width=180).print(table)


if __name__ == "__main__":
    main()
