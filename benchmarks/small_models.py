"""How often a small model makes the right call, and what each help contributes.

    python -m benchmarks.small_models [MODEL.gguf] [--base-url URL] [--row NAME ...] [--seeds N] [--results FILE]

Requests for six tools in a workspace that holds the files: valid calls, right tools, right arguments.
Those of ``requests.json`` were looked at while the help was made, those of ``held_out.json`` were not.
And edits of files in two small workspaces (``edits.json``: whether the edit would have changed the file as
asked). The first seed is the likeliest answer, further ones are drawn at temperature 0.8.

With ``--results`` each answer is kept as a line of JSON, and a run that was stopped goes on from there. The
seeds of a request follow each other, so that the server reads its prompt once.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from openai import OpenAI
from rich.console import Console
from rich.table import Table

from adapter.backends.chat_client import ChatClient, Message, constraint_fields
from adapter.backends.embedded_server import EmbeddedServer, download_builtin_model
from adapter.backends.endpoint_discovery import find_endpoint
from adapter.core.events import Json, JsonObject, ToolCall
from adapter.grammars.schema_ir import Choices
from adapter.parsing.parse_policy import LENIENT
from adapter.parsing.parser import parse
from adapter.prompting.intent.assist import AssistSettings, plan_assist
from adapter.prompting.system_prompt import system_prompt
from adapter.tools.call_resolution import is_valid
from adapter.tools.tool import ToolSet

HERE = Path(__file__).parent
MAX_STRING, MAX_TOKENS = 400, 900
FREE_TOKENS = 256
"""Where nothing ends an answer but the model: the longest right call takes about a hundred."""


@dataclass(frozen=True, slots=True)
class Written:
    """An answer. ``call``: empty where none can be read. ``timings``: of llama.cpp, in ms and tokens."""

    call: JsonObject
    text: str
    finish_reason: str | None
    timings: Mapping[str, Json] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Task:
    """A request, and the files of the workspace."""

    request: str
    paths: Sequence[str]


Asks: TypeAlias = Callable[[ChatClient, ToolSet, Task, int], Written]


@dataclass(frozen=True)
class Help:
    """What the model is given beside the grammar of its tools. ``assist``: the settings of `plan_assist`. ``asks``:
    another way to get an answer."""

    name: str
    assist: AssistSettings | None = None
    asks: Asks | None = None

    def request(self, tools: ToolSet, task: Task) -> tuple[list[Message], ToolSet, Choices]:
        if self.assist is None:
            return conversation(tools, task.request), tools, {}
        plan = plan_assist(task.request, tools, replace(self.assist, known_paths=task.paths))
        return conversation(plan.tools, task.request), plan.tools, plan.choices


def conversation(tools: ToolSet, request: str) -> list[Message]:
    """Signatures without types: small models copy those as values."""
    lines = [f"- {tool.name}({', '.join(tool.properties)}): {tool.description}" for tool in tools.values()]
    system = "\n".join(["You are a coding agent. Answer with one tool call.", "Tools:", *lines])
    return [{"role": "system", "content": system}, {"role": "user", "content": request}]


def sampling(seed: int, max_tokens: int) -> dict[str, Any]:
    return {"temperature": 0.8 if seed else 0.0, "seed": seed or 1, "max_tokens": max_tokens}


def ask_natively(client: ChatClient, tools: ToolSet, task: Task, seed: int) -> Written:
    """The first call of the server's own tool calling."""
    definitions = [tool.to_openai() for tool in tools.values()]
    request = [{"role": "user", "content": task.request}]
    with OpenAI(base_url=client.endpoint.base_url, api_key="none", max_retries=0) as server:
        answer = server.chat.completions.create(
            model=client.model,
            messages=request,  # type: ignore[arg-type]
            tools=definitions,  # type: ignore[arg-type]
            **sampling(seed, FREE_TOKENS),
        )
    message = answer.choices[0].message
    call: JsonObject = {}
    for made in message.tool_calls or ():
        if made.type == "function" and not call:
            call = _call(made.function.name, _decoded(made.function.arguments))
    timings = (answer.model_extra or {}).get("timings") or {}
    return Written(call, message.content or "", answer.choices[0].finish_reason, timings)


def ask_freely(client: ChatClient, tools: ToolSet, task: Task, seed: int) -> Written:
    """The first call that our parser finds in what the model writes to our prompt."""
    prompt = system_prompt("blade", "hermes", "compact", tools=tools)
    messages = [{"role": "system", "content": prompt}, {"role": "user", "content": task.request}]
    text, finish_reason, timings = _streamed(client, messages, seed, FREE_TOKENS, {})
    calls = parse(text, tools, policy=LENIENT).calls
    return Written(_call(calls[0].name, calls[0].arguments) if calls else {}, text, finish_reason, timings)


def ask(client: ChatClient, tools: ToolSet, task: Task, help_: Help, seed: int = 0) -> Written:
    began = time.monotonic()
    written = (help_.asks or _held(help_))(client, tools, task, seed)
    return Written(
        written.call, written.text, written.finish_reason, written.timings, round(time.monotonic() - began, 3)
    )


def _held(help_: Help) -> Asks:
    """The call that the model makes when a grammar admits nothing else."""

    def asks(client: ChatClient, tools: ToolSet, task: Task, seed: int) -> Written:
        messages, tools, choices = help_.request(tools, task)
        constraint = constraint_fields(client.endpoint.kind, tools, choices, max_string=MAX_STRING, max_text=MAX_STRING)
        text, finish_reason, timings = _streamed(client, messages, seed, MAX_TOKENS, constraint)
        call = _decoded(text.strip().removeprefix("<tool_call>").removesuffix("</tool_call>"))
        if not isinstance(call, dict):
            return Written({}, text, finish_reason, timings)
        made = _call(call.get("name"), call.get("arguments", call.get("parameters")))
        return Written(made, text, finish_reason, timings)

    return asks


def _streamed(
    client: ChatClient, messages: Sequence[Message], seed: int, max_tokens: int, extra: JsonObject
) -> tuple[str, str | None, Mapping[str, Json]]:
    text, finish_reason = "", None
    timings: Mapping[str, Json] = {}
    for chunk in client.stream(messages, extra=extra, **sampling(seed, max_tokens)):
        text, finish_reason = text + chunk.text, chunk.finish_reason or finish_reason
        timings = (chunk.raw or {}).get("timings") or timings
    return text, finish_reason, timings


def _call(name: Json, arguments: Json) -> JsonObject:
    return {"name": name, "arguments": arguments} if isinstance(name, str) and isinstance(arguments, dict) else {}


def _decoded(text: str) -> Json:
    try:
        return json.loads(text)
    except ValueError:
        return None


# --------------------------------------------------------------------- what is asked


@dataclass(frozen=True, slots=True)
class Verdict:
    valid: bool
    named: bool
    right: bool


@dataclass(frozen=True, slots=True)
class Case:
    """A request. ``group``: those that are counted together. ``judge``: what a call is worth."""

    group: str
    tools: ToolSet
    task: Task
    judge: Callable[[JsonObject], Verdict]
    seeds: int


def cases_of_requests(file: Path, seeds: int) -> Iterator[Case]:
    task = json.loads(file.read_text(encoding="utf-8"))
    if "files" not in task:  # a list of requests alone
        task |= {"files": json.loads((HERE / "requests.json").read_text(encoding="utf-8"))["files"]}
    tools = ToolSet(task["tools"])
    for row in task["requests"]:
        yield Case(file.stem, tools, Task(row["request"], list(task["files"])), _judge(row["expect"], tools), seeds)


def _judge(expected: JsonObject, tools: ToolSet) -> Callable[[JsonObject], Verdict]:
    def judge(call: JsonObject) -> Verdict:
        valid = bool(call) and is_valid(ToolCall("", call["name"], call["arguments"], ""), tools)
        named = call.get("name") == expected["name"]
        return Verdict(valid, named, named and expected["arguments"].items() <= call["arguments"].items())

    return judge


def cases_of_edits() -> Iterator[Case]:
    task = json.loads((HERE / "edits.json").read_text(encoding="utf-8"))
    tools = ToolSet(task["tools"])
    for space in task["workspaces"]:
        for kind in KINDS:
            for row in space[kind]:
                judge = _judge_edit(row, space["files"], tools)
                yield Case(f"{space['name']}, {kind}", tools, Task(row["request"], list(space["files"])), judge, 1)


def _judge_edit(row: JsonObject, files: Mapping[str, str], tools: ToolSet) -> Callable[[JsonObject], Verdict]:
    def judge(call: JsonObject) -> Verdict:
        valid = bool(call) and is_valid(ToolCall("", call["name"], call["arguments"], ""), tools)
        named = call.get("name") == "apply_edit"
        arguments = call.get("arguments", {})
        if not (valid and named) or arguments["path"] != row["path"]:
            return Verdict(valid, named, False)
        text = files[row["path"]]
        edited = text.replace(arguments["old_text"], arguments["new_text"])
        is_done = row["present"] in edited and row["absent"] not in edited
        return Verdict(valid, named, is_done and text.count(arguments["old_text"]) == 1)

    return judge


# ------------------------------------------------------------------------ the results

Key: TypeAlias = tuple[str, str, str, int]
"""Of an answer: the help, the group, the request and the seed."""


@dataclass
class Results:
    """What was answered, in memory and in ``file``."""

    file: Path | None
    answers: dict[Key, Written] = field(default_factory=dict)

    @classmethod
    def at(cls, file: Path | None) -> Results:
        results = cls(file)
        for line in file.read_text(encoding="utf-8").splitlines() if file and file.exists() else ():
            kept = json.loads(line)
            key = tuple(kept.pop("key"))
            results.answers[key] = Written(**kept)
        return results

    def add(self, key: Key, written: Written) -> None:
        self.answers[key] = written
        if self.file is not None:
            with self.file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps({"key": key, **asdict(written)}, ensure_ascii=False) + "\n")

    def verdicts(self, help_: Help, group: str, cases: Sequence[Case]) -> list[Verdict]:
        return [
            case.judge(written.call)
            for case in cases
            for seed in range(case.seeds)
            if case.group == group and (written := self.answers.get(_key(help_, case, seed)))
        ]

    def cells(self, help_: Help, cases: Sequence[Case]) -> list[str]:
        """For each group: valid calls, right tools, right calls, of how many; then what it took."""
        cells = []
        for group in groups(cases):
            verdicts = self.verdicts(help_, group, cases)
            counts = [sum(getattr(each, name) for each in verdicts) for name in ("valid", "named", "right")]
            cells.append(f"{' '.join(map(str, counts))} of {len(verdicts)}")
        answers = [each for key, each in self.answers.items() if key[0] == help_.name]
        seconds = sum(each.seconds for each in answers) / max(len(answers), 1)
        read, reused, written = (_mean(answers, name) for name in ("prompt_n", "cache_n", "predicted_n"))
        return [*cells, f"{seconds:.1f}", f"{read:.0f} + {reused:.0f}", f"{written:.0f}", self.speed(answers)]

    def speed(self, answers: Sequence[Written]) -> str:
        rates = []
        for count, duration in (("prompt_n", "prompt_ms"), ("predicted_n", "predicted_ms")):
            ms = _mean(answers, duration)
            rates.append(f"{1000 * _mean(answers, count) / ms:.0f}" if ms else "-")
        return ", ".join(rates)


def _key(help_: Help, case: Case, seed: int) -> Key:
    return help_.name, case.group, case.task.request, seed


def _mean(answers: Sequence[Written], name: str) -> float:
    values = [float(each.timings.get(name) or 0) for each in answers]
    return sum(values) / max(len(values), 1)


def groups(cases: Sequence[Case]) -> list[str]:
    return list(dict.fromkeys(case.group for case in cases))


def run(client: ChatClient, help_: Help, cases: Sequence[Case], results: Results) -> None:
    """Ask what is not answered yet, with a line for every fifth request."""
    for number, case in enumerate(cases, 1):
        for seed in range(case.seeds):
            if (key := _key(help_, case, seed)) not in results.answers:
                results.add(key, ask(client, case.tools, case.task, help_, seed))
        if number % 5 == 0:
            cell, *_ = results.cells(help_, [each for each in cases if each.group == case.group])
            print(f"{help_.name}: request {number} of {len(cases)}; {case.group}: {cell}", file=sys.stderr, flush=True)


HELPS = (
    Help("server alone", asks=ask_natively),
    Help("prompt only", asks=ask_freely),
    Help("grammar only"),
    Help("+ shortlist", AssistSettings(threshold=False, values=False)),
    Help("+ values", AssistSettings(threshold=False)),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("model", nargs="?", help="a GGUF file; default: the built-in model")
    parser.add_argument("--base-url", help="a running server instead")
    parser.add_argument("--seeds", type=int, default=1, help="answers to each of the requests")
    parser.add_argument("--requests", type=Path, nargs="*", default=[HERE / "requests.json", HERE / "held_out.json"])
    parser.add_argument("--no-edits", action="store_true", help="only the requests")
    parser.add_argument("--row", action="append", choices=[help_.name for help_ in HELPS], help="only this one")
    parser.add_argument("--results", type=Path, help="keep the answers here, and go on from those that are there")
    options = parser.parse_args()
    cases = [case for file in options.requests for case in cases_of_requests(file, options.seeds)]
    cases += [] if options.no_edits else cases_of_edits()
    rows = [each for each in HELPS if each.name in (options.row or [each.name])]
    results = Results.at(options.results)
    table = Table("help", *(f"{group}: valid, right tool, right call" for group in groups(cases)))
    for heading in ("s each", "tokens read + reused", "written", "tokens/s reading, writing"):
        table.add_column(heading, justify="right")
    with ExitStack() as stack:
        if options.base_url:
            endpoint = find_endpoint(options.base_url)
        else:
            endpoint = stack.enter_context(EmbeddedServer(options.model or download_builtin_model())).endpoint
        client = stack.enter_context(ChatClient(endpoint))
        try:
            for help_ in rows:
                run(client, help_, cases, results)
                print(help_.name, *results.cells(help_, cases), sep=" | ", flush=True)
        except KeyboardInterrupt:
            print("stopped; what there is:", file=sys.stderr)
    for help_ in rows:
        table.add_row(help_.name, *results.cells(help_, cases))
    Console().print(table)


KINDS = ("quoted", "unquoted")

if __name__ == "__main__":
    main()
