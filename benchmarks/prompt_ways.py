"""Calls of a real model by who describes the tools: its own chat template, or we, in one of our styles.

    python -m benchmarks.prompt_ways [MODEL.gguf] [--base-url URL] [--template FILE] [--constraint off required]
        [--format hermes] [--style trained compact full] [--prompts FOLDER] [--limit N]

The requests of ``requests.json``, each through the same translation as `adapter serve` makes, at temperature 0: valid
calls, right tools, right arguments, and the tokens of the prompts. ``--template``: a template that knows tools, for
a model that has none; then the figures are of the structure only, for the model was not trained on it. ``--prompts``:
other wordings of the styles, as of `adapter prompt`.
"""

from __future__ import annotations

import argparse
import json
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from adapter.backends.chat_client import ChatClient, constraint_fields
from adapter.backends.embedded_server import EmbeddedServer, download_builtin_model
from adapter.backends.endpoint_discovery import find_endpoint
from adapter.core.events import JsonObject
from adapter.evaluation.probe.task_runner import _folded
from adapter.grammars.constraint_mode import parse_constraint_mode
from adapter.protocols.openai_chat_response import StreamedCompletion
from adapter.protocols.template_prompt import TemplatePrompt
from adapter.protocols.translate import translate_chat_request
from adapter.protocols.translated_request import TranslatedRequest
from adapter.protocols.translation_options import ConstraintSettings, PromptSettings, TranslationOptions
from adapter.tools.tool import ToolSet
from benchmarks.small_models import HERE, Case, Verdict, cases_of_requests

MAX_TOKENS = 160
MAX_STRING = 200


@dataclass(frozen=True, slots=True)
class Way:
    """``style``: None for the model's own prompt."""

    name: str
    style: str | None
    constraint: str
    prompts: str | None = None


def ask(client: ChatClient, case: Case, way: Way, format: str, own: TemplatePrompt | None) -> tuple[Verdict, int]:
    """What the first call is worth, and the tokens of the prompt."""
    enforce = partial(constraint_fields, client.endpoint.kind, max_string=MAX_STRING)
    options = TranslationOptions(
        prompt=PromptSettings(
            format=format, style=way.style, prompts=way.prompts, own=own if way.style is None else None
        ),
        constraints=ConstraintSettings(
            mode=parse_constraint_mode(way.constraint),
            enforce=enforce,
            waits_for_calls=client.endpoint.kind == "llama.cpp",
        ),
    )
    tools = [tool.to_openai() for tool in ToolSet(case.tools).values()]
    body: JsonObject = {"messages": [{"role": "user", "content": case.task.request}], "tools": tools}
    first = translate_chat_request(body, options)
    request: TranslatedRequest | None = first
    answer, chunks, read = StreamedCompletion(first), list[JsonObject](), 0
    while request is not None:
        further = {key: value for key, value in request.body.items() if key not in ("messages", "stop")}
        stop = request.body.get("stop", ())
        for chunk in client.stream(
            request.body["messages"], stop=stop, max_tokens=MAX_TOKENS, temperature=0.0, seed=1, extra=further
        ):
            read = chunk.usage.prompt if chunk.usage else read
            if chunk.raw is not None:
                chunks += answer.feed(chunk.raw)
        request = answer.next_request()
    chunks += answer.close()
    _, calls, _ = _folded(chunks)
    call = {"name": calls[0].name, "arguments": calls[0].arguments} if calls else {}
    return case.judge(call), read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("model", nargs="?", help="a GGUF file; default: the built-in model")
    parser.add_argument("--base-url", help="a running server instead")
    parser.add_argument("--template", type=Path, help="a chat template in place of the model's")
    parser.add_argument("--format", default="hermes")
    parser.add_argument("--style", nargs="*", default=["trained", "compact", "full"])
    parser.add_argument("--constraint", nargs="*", default=["off", "required"])
    parser.add_argument("--prompts", action="append", help="a folder with other wordings; may be repeated")
    parser.add_argument("--limit", type=int, help="only the first requests")
    options = parser.parse_args()
    cases = list(cases_of_requests(HERE / "requests.json", 1))[: options.limit]
    table = Table("way", "valid", "right tool", "right call", "of", "tokens of a prompt", "s")
    with ExitStack() as stack:
        if options.base_url:
            endpoint = find_endpoint(options.base_url)
        else:
            source = options.template.read_text(encoding="utf-8") if options.template else None
            server = EmbeddedServer(options.model or download_builtin_model(), chat_template=source)
            endpoint = stack.enter_context(server).endpoint
        client = stack.enter_context(ChatClient(endpoint))
        found = client.own_prompt()
        print(f"prompt: {found.explanation}")
        ways = [Way(f"own, {mode}", None, mode) for mode in options.constraint if found.own]
        for folder in (None, *(options.prompts or ())):
            where = f" of {Path(folder).name}" if folder else ""
            ways += [
                Way(f"{style}{where}, {mode}", style, mode, folder)
                for mode in options.constraint
                for style in options.style
            ]
        for way in ways:
            began = time.monotonic()
            answers = [ask(client, case, way, options.format, found.own) for case in cases]
            counts = [sum(getattr(each, name) for each, _ in answers) for name in ("valid", "named", "right")]
            tokens = sum(read for _, read in answers) // len(answers)
            row = (way.name, *map(str, counts), str(len(answers)), str(tokens), f"{time.monotonic() - began:.0f}")
            print(json.dumps(row), flush=True)
            table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    main()
