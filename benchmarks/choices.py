"""Measure whether a small model calls when it should, and calls the right tool with the right values.

    python -m benchmarks.choices [MODEL.gguf] [--base-url URL] [--half build report] [--way NAME ...] [--set NAME ...]
        [--limit N] [--results FILE]

The requests in ``choices.json`` (four sets of tools) are translated as `adapter serve` does, at temperature 0. The
table shows valid calls, right tools and right calls (all of them, with the right arguments) for requests that need a
call, and needless calls for the others, with Wilson's 95 % intervals. ``--results`` stores each answer as a line of
JSON, and continues after the stored ones.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from adapter.backends.builtin_model import download_builtin_model
from adapter.backends.chat_client import ChatClient, build_constraint_fields
from adapter.backends.endpoint_discovery import find_endpoint
from adapter.backends.in_process_llama_cpp import EmbeddedServer
from adapter.core.events import Json, JsonObject, ToolCall
from adapter.evaluation.probe.probe_task_runner import _collect_chunks
from adapter.grammars.constraint_mode import Constraint
from adapter.prompting.intent.guided_choice import GuidedChoiceSettings
from adapter.protocols.chat_request_translation import translate_chat_request
from adapter.protocols.openai_chat_response import StreamedCompletion
from adapter.protocols.translated_request import TranslatedRequest
from adapter.protocols.translation_options import ConstraintSettings, PromptSettings, TranslationOptions
from adapter.tools.call_validation import is_valid
from adapter.tools.tool_set import ToolSet

HERE = Path(__file__).parent
MAX_TOKENS = 120
MAX_STRING = 200


@dataclass(frozen=True, slots=True)
class Way:
    """A way to send a request. ``native``: unchanged, to the server's own tool calling; ``own``: rendered by the
    model's template if it supports tools, and parsed by us."""

    name: str
    constraint: Constraint | None = None
    parts: GuidedChoiceSettings | None = None
    native: bool = False
    own: bool = False


WAYS = (
    Way("server alone", native=True),
    Way("words", "off"),
    Way("own", "off", own=True),
    Way("prefer", "prefer"),
    Way("required", "required"),
    Way("all", parts=GuidedChoiceSettings()),
    Way("all but threshold", parts=GuidedChoiceSettings(threshold=False)),
)


@dataclass(frozen=True, slots=True)
class Case:
    group: str
    request: str
    tools: Sequence[JsonObject]
    calls: Sequence[JsonObject]
    """The right calls, each argument with its accepted values."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer. ``calls``: as a client gets them. ``passes``: number of requests to the model server."""

    calls: Sequence[JsonObject]
    text: str
    prompt_tokens: int
    written_tokens: int
    passes: int
    seconds: float


def cases(halves: Sequence[str], groups: Sequence[str] = ()) -> Iterator[Case]:
    sets = json.loads((HERE / "choices.json").read_text(encoding="utf-8"))["sets"]
    for group, given in sets.items():
        tools = [{"type": "function", "function": each} for each in given["tools"]]
        for row in (row for half in halves for row in given[half]):
            if not groups or group in groups:
                yield Case(group, row["request"], tools, row["calls"])


def ask(client: ChatClient, case: Case, way: Way, max_tokens: int = MAX_TOKENS) -> Answer:
    enforce = partial(build_constraint_fields, client.endpoint.kind, max_string=MAX_STRING)
    options = TranslationOptions(
        prompt=PromptSettings(
            format="hermes", template_prompt=client.discover_own_prompt().template_prompt if way.own else None
        ),
        constraints=ConstraintSettings(
            mode=way.constraint, enforce=enforce, waits_for_calls=client.endpoint.kind == "llama.cpp"
        ),
        guided_choice=way.parts,
        native=way.native,
    )
    body: JsonObject = {"messages": [{"role": "user", "content": case.request}], "tools": list(case.tools)}
    began = time.monotonic()
    first = translate_chat_request(body, options)
    request: TranslatedRequest | None = first
    answer, chunks = StreamedCompletion(first), list[JsonObject]()
    read = written = passes = 0
    while request is not None:
        passes += 1
        further = {key: value for key, value in request.body.items() if key not in ("messages", "stop", "temperature")}
        for chunk in client.stream(
            request.body["messages"],
            stop=request.body.get("stop", ()),
            max_tokens=max_tokens,
            temperature=0.0,
            seed=1,
            extra=further,
        ):
            if chunk.usage:
                read, written = read + chunk.usage.prompt, written + chunk.usage.written
            if chunk.raw is not None:
                chunks += answer.feed(chunk.raw)
        request = answer.begin_next_request()
    chunks += answer.close()
    content, calls, _ = _collect_chunks(chunks)
    made = [{"name": call.name, "arguments": call.arguments} for call in calls]
    return Answer(made, content, read, written, passes, round(time.monotonic() - began, 3))


# ------------------------------------------------------------------------ scores


def is_right(case: Case, calls: Sequence[JsonObject]) -> bool:
    left = list(calls)
    for wanted in case.calls:
        found = next((call for call in left if _fits(call, wanted)), None)
        if found is None:
            return False
        left.remove(found)
    return not left


def _fits(call: JsonObject, wanted: JsonObject) -> bool:
    arguments = call["arguments"]
    return call["name"] == wanted["name"] and all(
        any(_equal(arguments.get(name), value) for value in values) for name, values in wanted["arguments"].items()
    )


def _equal(given: Json, wanted: Json) -> bool:
    if isinstance(given, str) and isinstance(wanted, str):
        return given.strip(" .").casefold() == wanted.strip(" .").casefold()
    return type(given) in (int, float, list, bool) and given == wanted and isinstance(given, bool) == (wanted is True)


@dataclass(slots=True)
class Tally:
    calling: int = 0
    valid: int = 0
    named: int = 0
    right: int = 0
    quiet: int = 0
    needless: int = 0

    def add(self, case: Case, answered: Answer) -> None:
        if not case.calls:
            self.quiet += 1
            self.needless += bool(answered.calls)
            return
        tools = ToolSet(case.tools)
        self.calling += 1
        self.valid += bool(answered.calls) and all(
            is_valid(ToolCall("", call["name"], call["arguments"], ""), tools) for call in answered.calls
        )
        self.named += sorted(call["name"] for call in answered.calls) == sorted(call["name"] for call in case.calls)
        self.right += is_right(case, answered.calls)


def interval(good: int, of: int) -> str:
    """Return Wilson's interval, in percent."""
    if not of:
        return "-"
    z, share = 1.96, good / of
    middle = share + z * z / (2 * of)
    around = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    low, high = (100 * (middle + side * around) / (1 + z * z / of) for side in (-1, 1))
    return f"{max(low, 0.0):.0f}-{high:.0f}"


HEADINGS = ("valid", "right tool", "right call", "of", "%", "needless", "of", "tokens read", "written", "passes", "s")


def row(way: Way, asked: Sequence[tuple[Case, Answer]]) -> list[str]:
    tally = Tally()
    for case, answered in asked:
        tally.add(case, answered)
    count = max(len(asked), 1)

    def mean(name: str) -> float:
        return float(sum(getattr(answered, name) for _, answered in asked)) / count

    figures = (tally.valid, tally.named, tally.right, tally.calling, interval(tally.right, tally.calling))
    quiet = (tally.needless, tally.quiet)
    costs = (f"{mean('prompt_tokens'):.0f}", f"{mean('written_tokens'):.0f}", f"{mean('passes'):.1f}")
    return [way.name, *map(str, (*figures, *quiet, *costs)), f"{mean('seconds'):.1f}"]


class Results:
    """The answers by way and request, in memory and in ``file``."""

    def __init__(self, file: Path | None, max_tokens: int = MAX_TOKENS) -> None:
        self._file, self._max_tokens = file, max_tokens
        self._answers: dict[tuple[str, str], Answer] = {}
        for line in file.read_text(encoding="utf-8").splitlines() if file and file.exists() else ():
            kept: Mapping[str, Json] = json.loads(line)
            self._answers[kept["way"], kept["request"]] = Answer(**kept["answered"])

    def get(self, way: Way, case: Case, client: ChatClient) -> Answer:
        key = way.name, case.request
        if key not in self._answers:
            self._answers[key] = answered = ask(client, case, way, self._max_tokens)
            if self._file is not None:
                kept = {"way": way.name, "request": case.request, "answered": asdict(answered)}
                with self._file.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(kept, ensure_ascii=False) + "\n")
        return self._answers[key]


def connect(stack: ExitStack, model: str | None, base_url: str | None) -> ChatClient:
    """Return a client of the server at ``base_url``, or of one for the file ``model`` (default: the built-in model)."""
    if base_url:
        return stack.enter_context(ChatClient(find_endpoint(base_url)))
    engine = stack.enter_context(EmbeddedServer(model or download_builtin_model()))
    return stack.enter_context(ChatClient(engine.endpoint))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("model", nargs="?", help="a GGUF file; default: the built-in model")
    parser.add_argument("--base-url", help="a running server instead")
    parser.add_argument("--half", nargs="*", default=["report"], choices=["build", "report"])
    parser.add_argument("--way", nargs="*", choices=[way.name for way in WAYS])
    parser.add_argument("--set", nargs="*", default=[], dest="groups", help="only these sets")
    parser.add_argument("--limit", type=int, help="only the first requests")
    parser.add_argument("--results", type=Path, help="keep the answers here")
    parser.add_argument("--by-set", action="store_true", help="a row for each set of tools, too")
    options = parser.parse_args()
    asked = list(cases(options.half, options.groups))[: options.limit]
    results = Results(options.results)
    table = Table("way", *HEADINGS)
    with ExitStack() as stack:
        client = connect(stack, options.model, options.base_url)
        for way in WAYS:
            if options.way and way.name not in options.way:
                continue
            answers = [(case, results.get(way, case, client)) for case in asked]
            groups = dict.fromkeys(case.group for case in asked) if options.by_set else ()
            for group in groups:
                some = [(case, answer) for case, answer in answers if case.group == group]
                table.add_row(*row(replace(way, name=f"{way.name}, {group}"), some))
            made = row(way, answers)
            print(json.dumps(made), flush=True)
            table.add_row(*made)
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
