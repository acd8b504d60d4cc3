"""How a request goes to a server with the prompt that the model's own template makes: step by step, without I/O.

``own_prompt`` in a translated request says that it is to be sent so, and by which way::

    llama.cpp   /apply-template with the tools, then /completion          (recorded from b11549)
    ollama      /api/chat with _debug_render_only, then /api/generate raw (seen in 0.32 and 0.33)
    vllm        the chat itself with tool_choice "none", which puts the tools into the prompt and reads no calls
                (since 0.10; not with --exclude-tools-when-tool-choice-none)
    template    a template that the user names, filled here, then a completion of text

What comes back is text in each of them, and ours to read.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from adapter.core.events import Json, JsonObject
from adapter.parsing.marker_tables import REASONING
from adapter.prompting.template_capabilities import TemplateCapabilities
from adapter.protocols import llama_cpp, ollama
from adapter.protocols.llama_cpp import completion_request, has_lazy_grammar, template_request, without_grammar

Way: TypeAlias = Literal["llama.cpp", "vllm", "ollama", "template"]

MARKS = "own_prompt"

PROMPT_MODES = ("auto", "own", "words")
"""own: the prompt that the model's template makes, or none; words: tools and calls described by us; auto: own where
that can be had."""


@dataclass(frozen=True, slots=True)
class TemplatePrompt:
    """What is known of a model's own template. ``bos``: with which its prompts begin, and which servers put there, too.
    ``server``: which kind takes the completion, for ``template``."""

    transport: Way
    traits: TemplateCapabilities
    bos: str = ""
    server: str = ""


NOT_OWN = (
    "the model's own prompt cannot be had for this request, and --prompt own takes no other: the server or the "
    "template does not allow it (see what was said at the start), or it has images, several answers (n) or logprobs"
)


def template_prompt_for(body: JsonObject, own: TemplatePrompt) -> TemplatePrompt | None:
    """``own`` for a client's request; None for one that has what only a chat takes."""
    if own.transport == "vllm":
        return own
    messages = body.get("messages")
    contents = (
        [each.get("content") for each in messages if isinstance(each, dict)] if isinstance(messages, list) else []
    )
    is_text = all(not isinstance(each, list) or all(map(_is_text, each)) for each in contents)
    return own if is_text and body.get("n") in (None, 1) and not body.get("logprobs") else None


def _is_text(part: Json) -> bool:
    return isinstance(part, str) or (isinstance(part, dict) and isinstance(part.get("text"), str))


@dataclass(frozen=True, slots=True)
class HttpPost:
    """A request to the server, whose answer is JSON unless it is the last step."""

    path: str
    body: JsonObject


@dataclass(frozen=True, slots=True)
class RenderTemplate:
    """To be filled into the template here. The answer is the prompt."""

    messages: Sequence[JsonObject]
    tools: Sequence[Json]
    variables: Mapping[str, Json] = field(default_factory=dict)


Steps: TypeAlias = Generator[HttpPost | RenderTemplate, Json, HttpPost]


class TemplatePromptError(Exception):
    """The template, or who fills it, takes the conversation not as it is; ``str(fault)`` has its words."""


def with_template_marks(body: JsonObject, own: TemplatePrompt, written: Mapping[str, str]) -> JsonObject:
    """A translated request that is to be sent with the model's own prompt. ``written``: of `own_messages`."""
    return {**body, MARKS: {"way": own.transport, "written": dict(written), "bos": own.bos, "server": own.server}}


def transport_of(body: JsonObject) -> Way | None:
    """How a request gets the model's own prompt; None where it does not."""
    marks = body.get(MARKS)
    return marks["way"] if isinstance(marks, dict) else None


def streams_lines(body: JsonObject) -> bool:
    """Whether the answer will stream as lines of JSON: only Ollama's own completions do."""
    return transport_of(body) == "ollama" or (transport_of(body) == "template" and body[MARKS]["server"] == "ollama")


def prompt_steps(path: str, body: JsonObject) -> Steps:
    """The steps by which a translated request is sent to ``path``, or elsewhere; the last is returned.

    Raises PromptFault where the prompt cannot be had.
    """
    match transport_of(body):
        case "llama.cpp":
            rest, marks = _without_marks(body)
            prompt = _prompt_in((yield HttpPost("/apply-template", template_request(rest))), "prompt")
            return HttpPost("/completion", completion_request(rest, _finished(prompt, marks, rest)))
        case "ollama":
            rest, marks = _without_marks(body)
            answer = yield HttpPost("/api/chat", ollama.render_request(rest))
            info = answer.get("_debug_info") if isinstance(answer, dict) else None
            prompt = _prompt_in(info if isinstance(info, dict) else answer, "rendered_template")
            return HttpPost("/api/generate", ollama.generate_request(rest, _finished(prompt, marks, rest)))
        case "template":
            rest, marks = _without_marks(body)
            variables = rest.get("chat_template_kwargs") or {}
            filled = yield RenderTemplate(rest["messages"], rest.get("tools") or (), variables)
            return _completion(rest, _finished(str(filled), marks, rest), marks)
        case "vllm":
            rest, _ = _without_marks(body)
            return HttpPost(path, rest | {"tool_choice": "none", "skip_special_tokens": False})
    if has_lazy_grammar(body):
        answer = yield HttpPost("/apply-template", template_request(body))
        said = answer.get("prompt") if isinstance(answer, dict) else None
        if isinstance(said, str):
            return HttpPost("/completion", completion_request(body, said))
        body = without_grammar(body)
    return HttpPost(path, body)


def _without_marks(body: JsonObject) -> tuple[JsonObject, JsonObject]:
    marks: JsonObject = body[MARKS]
    return {key: value for key, value in body.items() if key != MARKS}, marks


def _prompt_in(answer: Json, key: str) -> str:
    prompt = answer.get(key) if isinstance(answer, dict) else None
    if isinstance(prompt, str):
        return prompt
    error = answer.get("error") if isinstance(answer, dict) else None
    said = error.get("message") if isinstance(error, dict) else error
    raise TemplatePromptError(str(said or f"the server answered {str(answer)[:80]!r}, not a prompt"))


def _finished(prompt: str, marks: JsonObject, body: JsonObject) -> str:
    """The prompt with what the model wrote in the place of the words that stand for it, without what servers put
    before every prompt, and out of reasoning where the answer has to begin with a call."""
    for word, written in marks["written"].items():
        prompt = prompt.replace(word, written)
    prompt = prompt.removeprefix(marks["bos"])
    if is_fully_constrained(body):
        closing = next((close for open, close in REASONING.items() if prompt.rstrip().endswith(open)), "")
        space = "\n" if prompt.endswith("\n") and closing else ""
        prompt += f"{space}{closing}{space * 2}"
    return prompt


def is_fully_constrained(body: JsonObject) -> bool:
    """Whether the server enforces the answer from its first character on."""
    fields = ("grammar", "grammar_string", "json_schema", "response_format")
    return any(body.get(name) for name in fields) and not has_lazy_grammar(body)


_CHAT_ONLY = frozenset(
    {
        "messages", "tools", "tool_choice", "parallel_tool_calls", "max_completion_tokens", "chat_template_kwargs",
        "reasoning_effort", "reasoning_format", "preserved_tokens", "logprobs", "top_logprobs",
    }
)  # fmt: skip


def _completion(body: JsonObject, prompt: str, marks: JsonObject) -> HttpPost:
    """A completion of text, as the server at hand takes it."""
    if marks["server"] == "llama.cpp":
        return HttpPost("/completion", completion_request(body, prompt))
    if marks["server"] == "ollama":
        return HttpPost("/api/generate", ollama.generate_request(body, prompt))
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    request: JsonObject = {key: value for key, value in body.items() if key not in _CHAT_ONLY}
    request |= {"prompt": prompt} | ({"max_tokens": limit} if limit else {})
    if marks["server"] in ("vllm", "sglang"):
        request["skip_special_tokens"] = False
    return HttpPost("/v1/completions", request)


def as_chat(answer: Json) -> Json:
    """An event, or the whole, of whatever completes text as that of a chat; anything else as it is."""
    if not isinstance(answer, dict):
        return answer
    if isinstance(answer.get("response"), str) and "done" in answer:
        return ollama.as_completion(answer)
    match answer:
        case {"choices": [{"text": str(text), **choice}]}:
            said = {"role": "assistant", "content": text}
            made = {"index": choice.get("index") or 0, "delta": said, "message": said}
            return {**answer, "choices": [{**made, "finish_reason": choice.get("finish_reason")}]}
        case _:
            return llama_cpp.as_chat(answer)
