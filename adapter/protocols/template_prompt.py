"""Send a request with a prompt that the model's chat template renders, in steps without I/O.

``discover_own_prompt`` in a translated request selects one of these transports::

    llama.cpp   /apply-template with the tools, then /completion          (recorded from b11549)
    ollama      /api/chat with _debug_render_only, then /api/generate raw (seen in 0.32 and 0.33)
    vllm        the chat itself with tool_choice "none", which renders the tools but parses no calls
                (since 0.10; not with --exclude-tools-when-tool-choice-none)
    template    the user's template, rendered here, then a text completion

Each transport returns the model's raw text, which this library parses.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from adapter.conversation.message_content import get_text
from adapter.core.events import Json, JsonObject
from adapter.parsing.marker_tables import REASONING
from adapter.prompting.template_capabilities import TemplateCapabilities
from adapter.protocols import llama_cpp_completion, ollama
from adapter.protocols.llama_cpp_completion import (
    build_completion_request,
    build_template_request,
    has_lazy_grammar,
    remove_grammar,
)
from adapter.protocols.usage import get_object

Transport: TypeAlias = Literal["llama.cpp", "vllm", "ollama", "template"]

TEMPLATE_SETTINGS = "own_prompt"
"""Field of a translated request with the settings for rendering its prompt with the chat template. It is not sent to
the server."""

CONTINUED = "continued_text"
"""Field of a translated request with the text to append to its prompt, which is not sent to the server."""

Prefill: TypeAlias = Literal["completion", "final_message", "message"]
"""Ways to make the model continue its text if this library does not render the chat template.

completion: llama.cpp's ``/completion``, because its chat endpoint refuses to continue text if the template allows
reasoning. final_message: vLLM's ``continue_final_message``. message: an answer at the end of the conversation, which
Ollama and most other servers continue.
"""

LIMITS = ("max_tokens", "max_completion_tokens")
"""Request fields that limit the tokens of an answer."""
_LENGTH_REASONS = ("max_tokens", "MAX_TOKENS", "model_length")
"""Names for the finish reason ``length`` in other APIs (Anthropic, Cohere, Google, Mistral), which proxies pass on."""
MIN_TOKENS = 16
"""Minimum token limit for the rest of an answer."""

PROMPT_MODES = ("auto", "own", "words")
"""Ways to describe tools. own: the model's chat template; if it cannot be used, the request fails. words: a generated
prompt. auto: the chat template if possible, otherwise a generated prompt."""


@dataclass(frozen=True, slots=True)
class TemplatePrompt:
    """A usable chat template, with its capabilities (``traits``) and the transport that renders it.

    ``bos`` is the token at the start of its prompts, which servers also add. ``server`` is the kind of server that
    completes the prompt, if the transport is ``template``.
    """

    transport: Transport
    traits: TemplateCapabilities
    bos: str = ""
    server: str = ""


NOT_OWN = (
    "the chat template cannot be used for this request, and --prompt own forbids a generated prompt. Either the server "
    "or the template does not support it (see the log), or the request has images, logprobs or several answers (n)"
)


def find_template_prompt(body: JsonObject, template: TemplatePrompt) -> TemplatePrompt | None:
    """Return ``template``, or None if the request needs the server's chat endpoint, for example because of images."""
    if template.transport == "vllm":
        return template
    messages = body.get("messages")
    contents = (
        [each.get("content") for each in messages if isinstance(each, dict)] if isinstance(messages, list) else []
    )
    is_text = all(not isinstance(each, list) or all(map(_is_text, each)) for each in contents)
    return template if is_text and body.get("n") in (None, 1) and not body.get("logprobs") else None


def _is_text(part: Json) -> bool:
    return isinstance(part, str) or (isinstance(part, dict) and isinstance(part.get("text"), str))


@dataclass(frozen=True, slots=True)
class HttpPost:
    """A step that sends a request to the server. Its result is the decoded JSON, except in the last step."""

    path: str
    body: JsonObject


@dataclass(frozen=True, slots=True)
class RenderTemplate:
    """A step that renders the template locally. Its result is the prompt."""

    messages: Sequence[JsonObject]
    tools: Sequence[Json]
    variables: Mapping[str, Json] = field(default_factory=dict)


Steps: TypeAlias = Generator[HttpPost | RenderTemplate, Json, HttpPost]
"""A generator that yields steps, is sent the result of each step, and returns the last step."""


class TemplatePromptError(Exception):
    """Raised, with the reason, if the template or the server that renders it rejects the conversation."""


def with_template_settings(body: JsonObject, template: TemplatePrompt, written: Mapping[str, str]) -> JsonObject:
    """Return a request whose prompt is rendered by the chat template. For ``written``, see `TemplateMessages`."""
    return {
        **body,
        TEMPLATE_SETTINGS: {
            "way": template.transport,
            "written": dict(written),
            "bos": template.bos,
            "server": template.server,
        },
    }


def find_transport(body: JsonObject) -> Transport | None:
    """Return the transport of a request whose prompt the chat template renders, or None for other requests."""
    settings = body.get(TEMPLATE_SETTINGS)
    return settings["way"] if isinstance(settings, dict) else None


def streams_lines(body: JsonObject) -> bool:
    """Return whether the answer is streamed as JSON lines, as Ollama does."""
    return (
        find_transport(body) == "ollama"
        or body.get(TEMPLATE_SETTINGS, {}).get("server") == "ollama"
        or ollama.EXTRA in body
    )


def iter_prompt_steps(path: str, body: JsonObject) -> Steps:
    """Yield the steps that build the prompt, and return the final request.

    ``path`` is the path of the original request; the final request may have another one. Raises TemplatePromptError if
    the prompt cannot be built.
    """
    continued = str(body.get(CONTINUED) or "")
    body = {key: value for key, value in body.items() if key != CONTINUED}
    match find_transport(body):
        case "llama.cpp" | "ollama" | "template" as way:
            rest, settings = _remove_template_settings(body)
            if way == "llama.cpp":
                prompt = _get_prompt((yield HttpPost("/apply-template", build_template_request(rest))), "prompt")
            elif way == "ollama":
                answer = yield HttpPost("/api/chat", ollama.build_render_request(rest))
                info = answer.get("_debug_info") if isinstance(answer, dict) else None
                prompt = _get_prompt(info if isinstance(info, dict) else answer, "rendered_template")
            else:
                variables = rest.get("chat_template_kwargs") or {}
                prompt = str((yield RenderTemplate(rest["messages"], rest.get("tools") or (), variables)))
            server = settings["server"] if way == "template" else way
            return _build_completion(rest, _append_text(_finish_prompt(prompt, settings, rest), continued), server)
        case "vllm":
            rest, _ = _remove_template_settings(body)
            rest = with_final_message(rest, continued, is_vllm=True) if continued else rest
            return HttpPost(path, rest | {"tool_choice": "none", "skip_special_tokens": False})
    if ollama.EXTRA in body:
        return HttpPost("/api/chat", ollama.convert_to_native(body))
    if has_lazy_grammar(body) or continued:
        answer = yield HttpPost("/apply-template", build_template_request(body))
        prompt_text = answer.get("prompt") if isinstance(answer, dict) else None
        if isinstance(prompt_text, str):
            return HttpPost("/completion", build_completion_request(body, _append_text(prompt_text, continued)))
        body = remove_grammar(body)
    return HttpPost(path, body)


def _remove_template_settings(body: JsonObject) -> tuple[JsonObject, JsonObject]:
    settings: JsonObject = body[TEMPLATE_SETTINGS]
    return {key: value for key, value in body.items() if key != TEMPLATE_SETTINGS}, settings


def _get_prompt(answer: Json, key: str) -> str:
    prompt = answer.get(key) if isinstance(answer, dict) else None
    if isinstance(prompt, str):
        return prompt
    error = answer.get("error") if isinstance(answer, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    raise TemplatePromptError(str(message or f"the server sent {str(answer)[:80]!r}, expected a prompt"))


def _finish_prompt(prompt: str, settings: JsonObject, body: JsonObject) -> str:
    """Complete a rendered prompt.

    Placeholders are replaced by the text written by the model. The bos token is removed, because the server adds it
    again. If the answer must begin with a call, the reasoning is closed.
    """
    for word, written in settings["written"].items():
        prompt = prompt.replace(word, written)
    prompt = prompt.removeprefix(settings["bos"])
    return _close_reasoning(prompt) if is_fully_constrained(body) else prompt


def _close_reasoning(prompt: str) -> str:
    """Append a closing marker if ``prompt`` ends with an opening marker of reasoning."""
    closing = next((close for open, close in REASONING.items() if prompt.rstrip().endswith(open)), "")
    space = "\n" if prompt.endswith("\n") and closing else ""
    return f"{prompt}{space}{closing}{space * 2}"


def _append_text(prompt: str, text: str) -> str:
    """Append ``text``, the beginning of the model's answer, to ``prompt``. If the prompt opens reasoning and ``text``
    does not close it, the reasoning is closed first."""
    closed = _close_reasoning(prompt) if text else prompt
    return (prompt if closed[len(prompt) :].strip() in text else closed) + text


def is_fully_constrained(body: JsonObject) -> bool:
    """Return whether a constraint applies from the first character of the answer."""
    fields = ("grammar", "grammar_string", "json_schema", "response_format")
    return any(body.get(name) for name in fields) and not has_lazy_grammar(body)


_CHAT_ONLY = {*llama_cpp_completion.CHAT_ONLY, "preserved_tokens", "logprobs", "top_logprobs"}


def _build_completion(body: JsonObject, prompt: str, server: str) -> HttpPost:
    """Return the text completion request for a kind of server."""
    if server == "llama.cpp":
        return HttpPost("/completion", build_completion_request(body, prompt))
    if server == "ollama":
        return HttpPost("/api/generate", ollama.build_generate_request(body, prompt))
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    request: JsonObject = {key: value for key, value in body.items() if key not in _CHAT_ONLY}
    request |= {"prompt": prompt} | ({"max_tokens": limit} if limit else {})
    if server in ("vllm", "sglang"):
        request["skip_special_tokens"] = False
    return HttpPost("/v1/completions", request)


def convert_to_chat(answer: Json) -> Json:
    """Convert a completion, an Ollama response, or a stream event of either, to a normalized chat completion (see
    `_normalize_message`). Return other values unchanged."""
    if not isinstance(answer, dict):
        return answer
    if "done" in answer:
        return ollama.to_chat(answer)
    match answer:
        case {"choices": [{"text": str(text), **choice}]}:
            message = {"role": "assistant", "content": text}
            converted = {"index": choice.get("index") or 0, "delta": message, "message": message}
            return {**answer, "choices": [{**converted, "finish_reason": choice.get("finish_reason")}]}
        case {"choices": [*choices]} if any(map(_is_unusual, choices)):
            return {**answer, "choices": [_normalize_message(each) if _is_unusual(each) else each for each in choices]}
        case _:
            return llama_cpp_completion.convert_to_chat(answer)


def _is_unusual(choice: Json) -> bool:
    match choice:
        case {"finish_reason": reason} if reason in _LENGTH_REASONS:
            return True
        case {"delta": message} | {"message": message}:
            return isinstance(message, dict) and (
                isinstance(message.get("content"), list) or isinstance(message.get("function_call"), dict)
            )
        case _:
            return False


def _normalize_message(choice: JsonObject) -> JsonObject:
    """Normalize a choice: split content parts into content and reasoning, convert a legacy ``function_call`` to
    ``tool_calls``, and set the finish reason ``length`` for every kind of limit.

    Mistral's API sends parts: ``{"type": "text", "text": ...}`` and ``{"type": "thinking", "thinking": [...]}``.
    """
    key = "delta" if "delta" in choice else "message"
    message = get_object(choice.get(key))
    fields: JsonObject = {}
    if isinstance(parts := message.get("content"), list):
        fields["content"] = "".join(get_text([part]) for part in parts)
        if reasoning := "".join(get_text(get_object(part).get("thinking")) for part in parts):
            fields["reasoning_content"] = reasoning
    if (call := message.get("function_call")) and not message.get("tool_calls"):
        fields["tool_calls"] = [{"index": 0, "function": call}]
    finish_reason = choice.get("finish_reason")
    finish_reason = "length" if finish_reason in _LENGTH_REASONS else finish_reason
    return {**choice, key: {**message, **fields}, "finish_reason": finish_reason}


def continue_text(body: JsonObject, text: str, prefill: Prefill) -> JsonObject:
    """Return a request that lets the model continue its answer ``text``."""
    if TEMPLATE_SETTINGS in body or prefill == "completion":
        return {**body, CONTINUED: text}
    return with_final_message(body, text, is_vllm=prefill == "final_message")


def continue_last_message(body: JsonObject, prefill: Prefill) -> JsonObject:
    """Return a request whose last message, if it is the model's, is the beginning of its answer.

    llama.cpp rejects such a message if the template allows reasoning, and other templates would end it.
    """
    before, last = body["messages"][:-1], body["messages"][-1:]
    if not before or last[0]["role"] != "assistant":
        return body
    text = get_text(last[0].get("content"))
    return continue_text({**body, "messages": before}, text, prefill) if text else {**body, "messages": before}


def with_final_message(body: JsonObject, text: str, *, is_vllm: bool) -> JsonObject:
    """Append ``text`` to the messages, as the beginning of an answer that the model continues."""
    fields = {"add_generation_prompt": False, "continue_final_message": True} if is_vllm else {}
    return {**body, "messages": [*body["messages"], {"role": "assistant", "content": text}], **fields}


def with_shorter_limit(body: JsonObject, used_tokens: int) -> JsonObject:
    """Return the request with its token limit reduced by ``used_tokens``, the length of the answer's first part.

    The limit is at least `MIN_TOKENS`.
    """
    limits = {name: body[name] for name in LIMITS if isinstance(body.get(name), int)}
    return body | {name: max(MIN_TOKENS, limit - used_tokens) for name, limit in limits.items()}
