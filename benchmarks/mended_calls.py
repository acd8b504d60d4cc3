"""Whether our error messages let a model mend its call in one try.

    python -m benchmarks.mended_calls [MODEL.gguf] [--base-url URL] [--seeds 2] [--grammar] [--show]

Each conversation is a request, a broken call as the model's own turn, and what the
Session answers it: the real parser, session and tools word it. The model writes one
more turn, and it counts as mended when that turn's first call is the right one,
readable when it is a call that fits a tool at all. Beside it the same conversation with
``invalid call`` in the place of our message, and the request asked anew without the
broken call. ``--grammar``: the server lets the model write nothing but calls.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from adapter.backends.chat_client import ChatClient, constraint_fields
from adapter.backends.embedded_server import EmbeddedServer, download_builtin_model
from adapter.backends.endpoint_discovery import find_endpoint
from adapter.conversation.message_rendering import Message
from adapter.conversation.session import AskModel, Finished, RunTools, Session
from adapter.core.errors import ToolError
from adapter.core.events import JsonObject
from adapter.parsing.formats import get_format
from adapter.parsing.parser import parse
from adapter.prompting.system_prompt import system_prompt
from adapter.tools.call_resolution import resolve_call
from adapter.tools.tool import ToolSet
from adapter.workspace import Workspace

FORMAT = get_format("hermes")
OFFERED = ["read_file", "write_file", "grep_search", "apply_edit", "list_directory", "run_command"]
FILES = {
    "src/notes.txt": "TODO: say more\n",
    "settings.ini": "[server]\nport = 8000\ndebug = no\n",
    "README.md": "# Project\n\nFixes teh typo.\n",
}
MAX_TOKENS, MAX_STRING = 120, 200

Call = tuple[str, JsonObject]
REQUESTS: dict[str, Call] = {
    "Read the file src/notes.txt": ("read_file", {"path": "src/notes.txt"}),
    "Search for TODO in the src directory": ("grep_search", {"pattern": "TODO", "path": "src"}),
    "Write the text 'buy milk' to todo.txt": ("write_file", {"path": "todo.txt", "content": "buy milk"}),
    "In settings.ini change 'port = 8000' to 'port = 9000'": (
        "apply_edit",
        {"path": "settings.ini", "old_text": "port = 8000", "new_text": "port = 9000"},
    ),
}


def tagged(name: object, arguments: object) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def broken(name: str, given: JsonObject) -> dict[str, str]:
    """The call with each fault that it can have, by the fault's name."""
    texts = {
        "cut off": tagged(name, given).removesuffix("\n</tool_call>")[:-8],
        "words in the tags": f"<tool_call>\n{name} with {', '.join(given)}\n</tool_call>",
        "JSON beyond repair": f'<tool_call>\n{{"name": "{name}", "arguments": {{{{[}}\n</tool_call>',
        "no name": f"<tool_call>\n{json.dumps({'arguments': given})}\n</tool_call>",
        "arguments are a list": tagged(name, list(given.values())),
        "unknown tool": tagged("perform_task", given),
        "misspelt tool": tagged(name.replace("_", "ing_the_"), given),
        "no arguments": tagged(name, {}),
        "wrong type": tagged(name, {**given, "path": {"file": given["path"]}}),
        "other argument names": tagged(name, {f"the_{key}": value for key, value in given.items()}),
        "aliases that conflict": tagged(name, {**given, "file_path": "other.txt"}),
    }
    if name in ("write_file", "apply_edit"):
        texts["one argument missing"] = tagged(name, dict(list(given.items())[:-1]))
    if name == "read_file":
        texts["no such file"] = tagged(name, {"path": given["path"].rpartition("/")[2]})
    if name == "apply_edit":
        texts["text not found"] = tagged(name, {**given, "old_text": "port=80"})
    return texts


@dataclass(frozen=True, slots=True)
class Conversation:
    fault: str
    right: Call
    messages: tuple[Message, ...]
    """Up to and with our message."""


def conversations(folder: Path) -> Iterator[Conversation]:
    """Every fault in every request, where it leads to a message. What is run, is run in ``folder``."""
    for request, right in REQUESTS.items():
        for fault, text in broken(*right).items():
            for path, content in FILES.items():
                (folder / path).parent.mkdir(exist_ok=True)
                (folder / path).write_text(content, encoding="utf-8")
            with Workspace(folder, approve="yolo", only=OFFERED) as workspace:
                session = Session(system_prompt(tools=workspace.tools), FORMAT, workspace.tools)
                step: AskModel | RunTools | Finished = session.start(request)
                step = session.on_answer(
                    parse(text, workspace.tools, finish_reason="length" if fault == "cut off" else "stop")
                )
                if isinstance(step, RunTools):
                    step = session.on_tool_results(workspace.run_calls(step))
            if isinstance(step, AskModel) and "tool_error" in step.messages[-1]["content"]:
                yield Conversation(fault, right, step.messages)


def ours(messages: Sequence[Message]) -> Sequence[Message]:
    return messages


def bare(messages: Sequence[Message]) -> Sequence[Message]:
    return [*messages[:-1], {"role": "user", "content": FORMAT.encode_result("", "invalid call", "")}]


def anew(messages: Sequence[Message]) -> Sequence[Message]:
    return messages[:2]


ANSWERS: dict[str, Callable[[Sequence[Message]], Sequence[Message]]] = {
    "our message": ours,
    "invalid call": bare,
    "asked anew": anew,
}


def judge(text: str, right: Call, tools: ToolSet) -> str:
    """``mended``, ``readable`` or ``not``: what the first call in ``text`` is."""
    calls = parse(text, tools).calls
    if not calls:
        return "not"
    try:
        invocation = resolve_call(calls[0].name, calls[0].arguments, tools)
    except ToolError:
        return "not"
    is_right = invocation.tool.name == right[0] and right[1].items() <= invocation.arguments.items()
    return "mended" if is_right else "readable"


def answer(client: ChatClient, messages: Sequence[Message], tools: ToolSet, seed: int, *, grammar: bool) -> str:
    """Seed 0 is the likeliest answer, others are drawn at temperature 0.8."""
    constraint = (
        constraint_fields(client.endpoint.kind, tools, max_string=MAX_STRING, max_text=MAX_STRING) if grammar else {}
    )
    chunks = client.stream(
        messages, max_tokens=MAX_TOKENS, temperature=0.8 if seed else 0.0, seed=seed, extra=constraint
    )
    return "".join(chunk.text for chunk in chunks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("model", nargs="?", help="a GGUF file; default: the built-in model")
    parser.add_argument("--base-url", help="a running server instead")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--grammar", action="store_true", help="only calls can be written")
    parser.add_argument("--show", action="store_true", help="print the messages and the answers")
    options = parser.parse_args()
    counts: dict[str, Counter[tuple[str, str]]] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        tools = stack.enter_context(Workspace(folder, only=OFFERED)).tools
        asked = list(conversations(folder))
        if options.base_url:
            endpoint = find_endpoint(options.base_url)
        else:
            endpoint = stack.enter_context(EmbeddedServer(options.model or download_builtin_model())).endpoint
        client = stack.enter_context(ChatClient(endpoint))
        for conversation in asked:
            count = counts.setdefault(conversation.fault, Counter())
            if options.show:
                print(f"\n== {conversation.fault}: {conversation.messages[-2]['content']}")
                print(conversation.messages[-1]["content"])
            for way, worded in ANSWERS.items():
                for seed in range(options.seeds):
                    text = answer(client, worded(conversation.messages), tools, seed, grammar=options.grammar)
                    verdict = judge(text, conversation.right, tools)
                    count[way, verdict] += 1
                    if options.show:
                        print(f"-- {way}, seed {seed}: {verdict}: {text[:200]!r}", flush=True)
    report(counts)


def report(counts: dict[str, Counter[tuple[str, str]]]) -> None:
    """Per fault and answer: mended, then readable calls, of how many."""
    print(f"\n| the call was broken by | {' | '.join(ANSWERS)} |\n|---{'|--:' * len(ANSWERS)}|")
    total: Counter[tuple[str, str]] = sum(counts.values(), Counter())
    for label, count in {**counts, "all": total}.items():
        cells = []
        for way in ANSWERS:
            mended, readable = count[way, "mended"], count[way, "readable"]
            cells.append(f"{mended} + {readable} of {mended + readable + count[way, 'not']}")
        print(f"| {label} | {' | '.join(cells)} |")
    print("\nmended + calls that fit a tool but are not the right one, of all")


if __name__ == "__main__":
    main()
