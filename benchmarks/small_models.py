"""How often a small model makes the right call, and what each help contributes.

    python -m benchmarks.small_models [MODEL.gguf] [--base-url URL] [--row NAME ...] [--seeds N] [--requests FILE ...]

Requests for six tools in a workspace that holds the files: valid calls, right tools, right arguments.
Those of ``requests.json`` were looked at while the help was made, those of ``held_out.json`` were not.
And edits of files in two small workspaces (``edits.json``: whether the edit would have changed the file as
asked). The first seed is the likeliest answer, further ones are drawn at temperature 0.8.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openai import OpenAI
from rich.console import Console
from rich.table import Table

from adapter.calls import is_valid
from adapter.embedded import EmbeddedServer, fetch_weights
from adapter.endpoints import find_endpoint
from adapter.events import Json, JsonObject, ToolCall
from adapter.examples import EXAMPLES, Example, nearest
from adapter.grounding import Evidence, choices_for, offered
from adapter.parser import parse
from adapter.policy import LENIENT
from adapter.prompt import system_prompt
from adapter.schema_shapes import Choices
from adapter.tools import ToolSet
from adapter.transport import ChatClient, Message, constraint_fields

HERE = Path(__file__).parent
MAX_STRING, MAX_TOKENS = 400, 600


@dataclass(frozen=True)
class Help:
    """What the model is given beside the grammar of its tools."""

    name: str
    grounding: bool = False
    near_examples: bool = False
    only_fitting: bool = False
    asks: Callable[[ChatClient, ToolSet, Evidence, int], JsonObject] | None = None

    def request(self, tools: ToolSet, evidence: Evidence) -> tuple[list[Message], ToolSet, Choices]:
        if self.only_fitting:
            tools = offered(tools, evidence)
        examples = nearest(evidence.request, tools) if self.near_examples else one_each(tools)
        choices: Choices = choices_for(tools, evidence) if self.grounding else {}
        return conversation(tools, examples, evidence.request), tools, choices


def one_each(tools: ToolSet) -> list[Example]:
    first = {example.tool: example for example in reversed(EXAMPLES)}
    return [first[name] for name in tools if name in first]


def conversation(tools: ToolSet, examples: Sequence[Example], request: str) -> list[Message]:
    """Signatures without types (small models copy those as values), then worked examples as earlier turns."""
    lines = [f"- {tool.name}({', '.join(tool.properties)}): {tool.description}" for tool in tools.values()]
    messages: list[Message] = [
        {
            "role": "system",
            "content": "\n".join(["You are a coding agent. Answer with one tool call.", "Tools:", *lines]),
        }
    ]
    for example in examples:
        call = json.dumps({"name": example.tool, "arguments": example.arguments}, ensure_ascii=False)
        messages.append({"role": "user", "content": example.request})
        messages.append({"role": "assistant", "content": f"<tool_call>\n{call}\n</tool_call>"})
    return [*messages, {"role": "user", "content": request}]


def sampling(seed: int) -> dict[str, Any]:
    return {"temperature": 0.8 if seed else 0.0, "seed": seed or 1, "max_tokens": MAX_TOKENS}


def ask_natively(client: ChatClient, tools: ToolSet, evidence: Evidence, seed: int) -> JsonObject:
    """The first call of the server's own tool calling."""
    definitions = [tool.to_openai() for tool in tools.values()]
    request = [{"role": "user", "content": evidence.request}]
    with OpenAI(base_url=client.endpoint.base_url, api_key="none", max_retries=0) as server:
        answer = server.chat.completions.create(
            model=client.model,
            messages=request,  # type: ignore[arg-type]
            tools=definitions,  # type: ignore[arg-type]
            **sampling(seed),
        )
    for call in answer.choices[0].message.tool_calls or ():
        if call.type == "function":
            return {"name": call.function.name, "arguments": json.loads(call.function.arguments)}
    return {}


def ask_freely(client: ChatClient, tools: ToolSet, evidence: Evidence, seed: int) -> JsonObject:
    """The first call that our parser finds in what the model writes to our prompt."""
    prompt = system_prompt("blade", "hermes", "compact", tools=tools)
    messages = [{"role": "system", "content": prompt}, {"role": "user", "content": evidence.request}]
    text = "".join(chunk.text for chunk in client.stream(messages, **sampling(seed)))
    calls = parse(text, tools, policy=LENIENT).calls
    return {"name": calls[0].name, "arguments": calls[0].arguments} if calls else {}


def ask(client: ChatClient, tools: ToolSet, evidence: Evidence, help_: Help, seed: int = 0) -> JsonObject:
    """The call, or an empty dict where there is none that can be read."""
    if help_.asks is not None:
        return help_.asks(client, tools, evidence, seed)
    messages, tools, choices = help_.request(tools, evidence)
    constraint = constraint_fields(client.endpoint.kind, tools, choices, max_string=MAX_STRING, max_text=MAX_STRING)
    answer = client.stream(messages, extra=constraint, **sampling(seed))
    text = "".join(chunk.text for chunk in answer)
    try:
        call = json.loads(text.strip().removeprefix("<tool_call>").removesuffix("</tool_call>"))
    except ValueError:
        return {}
    arguments = call.get("arguments", call.get("parameters"))
    return {"name": call["name"], "arguments": arguments} if isinstance(arguments, dict) else {}


def score_requests(client: ChatClient, help_: Help, file: Path, seeds: int) -> tuple[int, int, int, int]:
    """Valid calls, right tools, right arguments, of how many."""
    task = json.loads(file.read_text(encoding="utf-8"))
    if "files" not in task:  # a list of requests alone
        task |= {"files": json.loads((HERE / "requests.json").read_text(encoding="utf-8"))["files"]}
    contents = {path: text for path, text in task["files"].items() if text is not None}
    tools = ToolSet(task["tools"])
    valid = named = right = 0
    for row in task["requests"]:
        evidence, expected = Evidence(row["request"], list(task["files"]), (), contents), row["expect"]
        for seed in range(seeds):
            call = ask(client, tools, evidence, help_, seed)
            valid += bool(call) and is_valid(ToolCall("", call["name"], call["arguments"], ""), tools)
            is_named = call.get("name") == expected["name"]
            named += is_named
            right += is_named and expected["arguments"].items() <= call["arguments"].items()
    return valid, named, right, len(task["requests"]) * seeds


def score_edits(client: ChatClient, help_: Help, workspace: JsonObject, kind: str) -> tuple[int, int]:
    """Edits that would have done what was asked, of how many."""
    tools = ToolSet(json.loads((HERE / "edits.json").read_text())["tools"])
    files = workspace["files"]
    calls = [
        (ask(client, tools, Evidence(row["request"], list(files), (), files), help_), row) for row in workspace[kind]
    ]
    return sum(is_done(call, row, files) for call, row in calls), len(calls)


def is_done(call: JsonObject, row: JsonObject, files: dict[str, str]) -> bool:
    arguments: Json = call.get("arguments", {})
    if call.get("name") != "apply_edit" or arguments["path"] != row["path"]:
        return False
    text = files[row["path"]]
    edited = text.replace(arguments["old_text"], arguments["new_text"])
    return text.count(arguments["old_text"]) == 1 and row["present"] in edited and row["absent"] not in edited


HELPS = (
    Help("server alone", asks=ask_natively),
    Help("prompt only", asks=ask_freely),
    Help("grammar only"),
    Help("+ grounding", grounding=True),
    Help("+ nearest examples", grounding=True, near_examples=True),
    Help("+ only tools that fit", grounding=True, near_examples=True, only_fitting=True),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("model", nargs="?", help="a GGUF file; default: the built-in model")
    parser.add_argument("--base-url", help="a running server instead")
    parser.add_argument("--seeds", type=int, default=1, help="answers to each of the requests")
    parser.add_argument("--requests", type=Path, nargs="*", default=[HERE / "requests.json", HERE / "held_out.json"])
    parser.add_argument("--no-edits", action="store_true", help="only the requests")
    parser.add_argument("--row", action="append", choices=[help_.name for help_ in HELPS], help="only this one")
    options = parser.parse_args()
    workspaces = json.loads((HERE / "edits.json").read_text())["workspaces"]
    if options.no_edits:
        workspaces = []
    of_requests = [
        f"{file.stem}: {what}" for file in options.requests for what in ("valid", "right tool", "right call")
    ]
    table = Table("help", *of_requests, *(f"{w['name']}: {k} edits" for w in workspaces for k in KINDS))
    table.add_column("s", justify="right")
    with ExitStack() as stack:
        if options.base_url:
            endpoint = find_endpoint(options.base_url)
        else:
            endpoint = stack.enter_context(EmbeddedServer(options.model or fetch_weights())).endpoint
        client = stack.enter_context(ChatClient(endpoint))
        for help_ in [each for each in HELPS if each.name in (options.row or [each.name])]:
            started = time.monotonic()
            figures = []
            for file in options.requests:
                *scores, total = score_requests(client, help_, file, options.seeds)
                figures += [f"{score}/{total}" for score in scores]
            edits = [score_edits(client, help_, workspace, kind) for workspace in workspaces for kind in KINDS]
            figures += [f"{done}/{count}" for done, count in edits]
            table.add_row(help_.name, *figures, f"{time.monotonic() - started:.0f}")
    Console().print(table)


KINDS = ("quoted", "unquoted")

if __name__ == "__main__":
    main()
