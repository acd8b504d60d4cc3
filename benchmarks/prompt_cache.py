"""Measure how many prompt tokens a server reuses over one session with tools.

    python -m benchmarks.prompt_cache [MODEL.gguf] [--turns 20] [--dense] [--random]

A real llama.cpp reports how many prompt tokens it reused (``cache_n``) and processed (``prompt_n``). The same client
keeps the conversation in OpenAI's format, and in each turn requests one call and returns a result of a few lines. Rows:

- ours: the request translated by `adapter.protocols`, with past calls as the model wrote them
- ours, calls encoded: the same, with past calls encoded again
- own prompt: the chat template renders tools, calls and results, with past calls as the model wrote them
- own prompt, calls encoded: the same, with past calls as the template writes them
- plain, tools first: the server gets tools and parsed calls; its template puts the tools first and encodes the calls
- plain, tools anew: the same with a template that puts the tools before the last message, as Mistral's does, or with a
  client that repeats them there

All answers are constrained by the same grammar, so that all sessions have as many calls; it allows the model's own
spelling.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

from rich.console import Console
from rich.table import Table

from adapter.backends.builtin_model import download_builtin_model
from adapter.backends.endpoint_discovery import Endpoint, get_json
from adapter.backends.in_process_llama_cpp import EmbeddedServer
from adapter.backends.prompt_discovery import PromptDiscoverer
from adapter.core.events import JsonObject
from adapter.protocols.chat_request_translation import translate_chat_request
from adapter.protocols.conversation_cache import VerbatimCallCache
from adapter.protocols.exchange_guardrails import RetryPolicy
from adapter.protocols.openai_chat_response import BufferedCompletion
from adapter.protocols.template_prompt import HttpPost, convert_to_chat, iter_prompt_steps
from adapter.protocols.translated_request import TranslatedRequest
from adapter.protocols.translation_options import PromptSettings, TranslationOptions

FILES = [f"{folder}/{name}.py" for folder in ("src", "tests") for name in ("main", "config", "parse", "net", "log")]
WORDS = ["import", "timeout", "class", "return", "error"]


def definition(name: str, description: str, **parameters: list[str]) -> JsonObject:
    properties = {key: {"type": "string", "enum": values} for key, values in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


# Each value has few alternatives, so that the smallest model can write each call.
NEVER = RetryPolicy(retries=0)
"""No retries, because the model's text has no meaning."""

TOOLS = [
    definition("read_file", "Read a file of the project.", path=FILES),
    definition("grep_search", "Find the lines of a file with a word in them.", pattern=WORDS, path=FILES),
    definition("list_directory", "List the files of a folder.", path=["src", "tests", "."]),
]

# The model chooses whether to write a space between the parts.
GRAMMAR = "\n".join(
    [
        'root ::= "<tool_call>" w (read | grep | list) w "</tool_call>"',
        's ::= " "?',
        'w ::= "\\n"?',
        'path ::= "\\"path\\":" s "\\"" (' + " | ".join(json.dumps(file) for file in FILES) + ') "\\""',
        'word ::= "\\"pattern\\":" s "\\"" (' + " | ".join(json.dumps(word) for word in WORDS) + ') "\\""',
        'folder ::= "\\"path\\":" s "\\"" ("src" | "tests" | ".") "\\""',
        'read ::= "{\\"name\\":" s "\\"read_file\\"," s "\\"arguments\\":" s "{" path "}}"',
        'grep ::= "{\\"name\\":" s "\\"grep_search\\"," s "\\"arguments\\":" s "{" word "," s path "}}"',
        'list ::= "{\\"name\\":" s "\\"list_directory\\"," s "\\"arguments\\":" s "{" folder "}}"',
    ]
)

DENSE = GRAMMAR.replace('s ::= " "?', 's ::= ""')
"""JSON without spaces, as many models write it, but no encoder does."""

_CALLS = (
    "{% for c in m.tool_calls %}<tool_call>\n"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}'
)
_TURN = (
    "<|im_start|>{{ 'user' if m.role == 'tool' else m.role }}\n"
    "{% if m.role == 'tool' %}<tool_response>\n{{ m.content }}\n</tool_response>"
    "{% else %}{{ m.content or '' }}{% endif %}{% if m.tool_calls %}" + _CALLS + "{% endif %}<|im_end|>\n"
)
_LIST = (
    "<tools>\n{% for tool in listed %}{{ tool | tojson }}\n{% endfor %}</tools>\n"
    'For each call write <tool_call>\n{"name": <name>, "arguments": <arguments>}\n</tool_call>\n'
)
_END = "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
TOOLS_FIRST = (
    "{% if listed %}<|im_start|>system\n" + _LIST + "<|im_end|>\n{% endif %}"
    "{% for m in messages %}" + _TURN + "{% endfor %}" + _END
)
OWN = (
    "{%- if tools %}<|im_start|>system\n<tools>\n{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}</tools>\n"
    'For each call write <tool_call>\n{"name": <name>, "arguments": <arguments>}\n</tool_call><|im_end|>\n{% endif %}'
    "{% for m in messages %}{% if m.role == 'tool' %}<|im_start|>user\n<tool_response>\n{{ m.content }}\n"
    "</tool_response>{% else %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}{% for c in m.tool_calls %}<tool_call>\n"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}'
    "{% endif %}<|im_end|>\n{% endfor %}" + _END
)
"""A template with tools, like Qwen's."""
TOOLS_ANEW = (
    "{% for m in messages %}{% if loop.last and listed %}<|im_start|>system\n"
    + _LIST
    + "<|im_end|>\n{% endif %}"
    + _TURN
    + "{% endfor %}"
    + _END
)


@dataclass(frozen=True)
class Way:
    """A way to send requests. ``ask`` returns the completion that a client gets. ``template``: None for the model's."""

    name: str
    ask: Callable[[str, JsonObject], JsonObject]
    template: str | None = None


@dataclass(frozen=True)
class Figures:
    """Token counts of prompts. ``first``: the counts of the first prompt, which is never cached; they are part of
    ``read``."""

    reused: int
    read: int
    first: int
    seconds: float
    calls: int

    @property
    def share(self) -> float:
        return self.reused / (self.reused + self.read)

    @property
    def later(self) -> int:
        return self.read - self.first


def post(base_url: str, body: JsonObject) -> Any:
    content = json.dumps(body).encode()
    with urlopen(HttpRequest(f"{base_url}/chat/completions", content, {"Content-Type": "application/json"})) as answer:
        return json.load(answer)


def read(completion: JsonObject, request: TranslatedRequest) -> JsonObject:
    answer = BufferedCompletion(request).feed(completion)
    assert not isinstance(answer, TranslatedRequest)
    return answer


def translated(remembers: bool) -> Callable[[str, JsonObject], JsonObject]:
    options = TranslationOptions(prompt=PromptSettings(format="hermes", style="compact"), retry_policy=NEVER)

    def ask(base_url: str, body: JsonObject) -> JsonObject:
        used = options if remembers else replace(options, memory=VerbatimCallCache())
        request = translate_chat_request(body, used)
        return read(post(base_url, request.body), request)

    return ask


def plain(base_url: str, body: JsonObject) -> JsonObject:
    kept = {key: value for key, value in body.items() if key != "tools"}
    sent = {**kept, "chat_template_kwargs": {"listed": body["tools"]}}
    return read(post(base_url, sent), translate_chat_request(body, TranslationOptions(retry_policy=NEVER)))


def own(remembers: bool) -> Callable[[str, JsonObject], JsonObject]:
    memory = VerbatimCallCache()

    def ask(base_url: str, body: JsonObject) -> JsonObject:
        endpoint = Endpoint(base_url, "llama.cpp")
        found = PromptDiscoverer(endpoint).discover("")
        request = translate_chat_request(
            body,
            TranslationOptions(
                prompt=PromptSettings(template_prompt=found.template_prompt),
                memory=memory if remembers else VerbatimCallCache(),
                retry_policy=NEVER,
            ),
        )
        steps = iter_prompt_steps("", request.body)
        step = next(steps)
        try:
            while True:
                assert isinstance(step, HttpPost)
                answer = get_json(endpoint.root + step.path, step.body, timeout_s=60)
                step = steps.send(answer.body if answer else None)
        except StopIteration as stop:
            last: HttpPost = stop.value
        answer = get_json(endpoint.root + last.path, last.body, timeout_s=600)
        assert answer is not None
        completion = convert_to_chat(answer.body)
        if remembers:
            return read(completion, request)
        return read(completion, replace(request, memory=VerbatimCallCache()))

    return ask


WAYS = (
    Way("ours", translated(remembers=True)),
    Way("ours, calls encoded", translated(remembers=False)),
    Way("own prompt", own(remembers=True), OWN),
    Way("own prompt, calls encoded", own(remembers=False), OWN),
    Way("plain, tools first", plain, TOOLS_FIRST),
    Way("plain, tools anew", plain, TOOLS_ANEW),
)


def run(base_url: str, way: Way, turns: int, grammar: str = GRAMMAR) -> Figures:
    chance = random.Random(1)
    messages: list[JsonObject] = [{"role": "user", "content": "Look through the project for everything on timeouts."}]
    reused = read = first = calls = 0
    began = time.monotonic()
    for turn in range(turns):
        body = {"messages": messages, "tools": TOOLS, "max_tokens": 160, "grammar": grammar}
        completion = way.ask(base_url, {**body, "temperature": 0.8, "seed": turn})
        reused += completion["timings"]["cache_n"]
        read += completion["timings"]["prompt_n"]
        first = first or read
        message = completion["choices"][0]["message"]
        made = message.get("tool_calls") or []
        calls += bool(made)
        messages.append({key: message[key] for key in ("role", "content", "tool_calls") if message.get(key)})
        lines = [f"{chance.randrange(400)}: {' '.join(chance.choices(WORDS, k=6))}" for _ in range(3)]
        result = "\n".join(lines)
        if made:
            messages += [{"role": "tool", "tool_call_id": call["id"], "content": result} for call in made]
        else:
            messages.append({"role": "user", "content": result})
    return Figures(reused, read, first, time.monotonic() - began, calls)


def measure(weights: Path, turns: int, way: Way, grammar: str = GRAMMAR) -> Figures:
    """Measure one way with a new server, whose cache contains nothing from another way."""
    with EmbeddedServer(weights, context_size=8192, chat_template=way.template) as server:
        return run(server.endpoint.base_url, way, turns, grammar)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("model", nargs="?", help="a GGUF file; default: the built-in model")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--random", action="store_true", help="the model of random weights: seconds, not minutes")
    parser.add_argument("--dense", action="store_true", help="the model writes JSON without spaces")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        if options.random:
            from tests.engines import write_random_gguf

            weights = write_random_gguf(Path(folder) / "random.gguf")
        else:
            weights = Path(options.model or download_builtin_model())
        table = Table("way", "reused", "share", "read first", "read later", "calls", "s")
        for way in WAYS:
            row = measure(weights, options.turns, way, DENSE if options.dense else GRAMMAR)
            tokens = (f"{row.reused:,}", f"{row.share:.1%}", f"{row.first:,}", f"{row.later:,}")
            numbers = (*tokens, f"{row.calls}", f"{row.seconds:.0f}")
            table.add_row(way.name, *numbers)
            print(way.name, *numbers, flush=True)
    Console().print(table)


if __name__ == "__main__":
    main()
