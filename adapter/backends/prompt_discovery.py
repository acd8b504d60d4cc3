"""Discover whether and how a server renders a model's own chat template.

As a test, a few short conversations are rendered (`adapter.prompting.template_capabilities`), if possible by the
server. vLLM does not show the prompt, but its token count reveals whether the prompt contains the tools.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from adapter.backends.context_size import LOADING_S
from adapter.backends.endpoint_discovery import (
    MAX_MODELS,
    Endpoint,
    HttpAnswer,
    get_json,
    get_object,
    parse_json_object,
)
from adapter.backends.format_derivation import detect_format
from adapter.backends.template_files import TemplateWorker
from adapter.core.events import Json, JsonObject
from adapter.parsing.formats import get_format, guess_format
from adapter.prompting.chat_template import ChatTemplateError
from adapter.prompting.deriving.format_detection import DetectedFormat
from adapter.prompting.template_capabilities import CAREFUL, TOOLS, TemplateCapabilities, probe_template
from adapter.protocols.conversation_cache import Conversation
from adapter.protocols.ollama import build_render_request
from adapter.protocols.template_messages import prepare_template_messages, prepare_tool_definitions
from adapter.protocols.template_prompt import TemplatePrompt
from adapter.tools.tool_set import ToolSet

PROBE_TIMEOUT_S = 30.0
"""Timeout of one test, in seconds. It is long, because the server may be busy with another request."""
OLLAMA_VERSION = [0, 32]
"""Oldest version of Ollama that is known to return rendered prompts. Older ones may load the model and answer."""

NO_TOOLS = "in words: the model's chat template does not support tools"


@dataclass(frozen=True, slots=True)
class PromptDiscovery:
    """The kind of a model's prompts, rendered by its chat template or generated, and the reason for it."""

    template_prompt: TemplatePrompt | None
    """The usable chat template, or None if a generated prompt must be used."""
    explanation: str
    """The kind of prompt and the reason for it, for the user."""
    template: str | None = None
    """Text of the template, or None if unknown."""
    is_final: bool = True
    """True if another query would return the same result."""
    recognized: DetectedFormat | None = None
    """The format that fits the template, or None if there is no template."""

    @property
    def reason(self) -> str:
        """The reason why the chat template cannot be used, for an error message."""
        return self.explanation.removeprefix("in words: ")

    def format_of(self, model: str) -> str | None:
        """Return the name of the format of the model's calls, or None if it is unknown.

        The format is recognized by the chat template or, without a template, guessed from the model's name.
        """
        return self.recognized.format if self.recognized is not None else guess_format(model)


Fill: TypeAlias = Callable[[Sequence[JsonObject], Sequence[Json]], str | None]
"""A function that renders a prompt from messages and tools. It returns None if the template rejects them."""


class PromptDiscoverer:
    """Discovers how to prompt the models of ``endpoint``. The user's ``template``, if any, applies to all of them."""

    def __init__(self, endpoint: Endpoint, template: TemplateWorker | None = None) -> None:
        self.endpoint, self.template = endpoint, template
        self._found: dict[str, PromptDiscovery] = {}
        self._lock = threading.Lock()

    def discover(self, model: str) -> PromptDiscovery:
        """Return how to prompt ``model``. The first call for a model queries the server."""
        name = "" if self.endpoint.kind == "llama.cpp" else model
        with self._lock:
            found = self._found.get(name)
            if found is None:
                found = self._find(model)
                if found.template is not None:
                    template = self.template.template if self.template is not None else found.template
                    found = replace(found, recognized=detect_format(template, model))
                if found.is_final:
                    if len(self._found) >= MAX_MODELS:
                        self._found.clear()
                    self._found[name] = found
            return found

    def forget(self) -> None:
        """Clear the cache, because the server may have loaded another model."""
        with self._lock:
            self._found.clear()

    def _find(self, model: str) -> PromptDiscovery:
        if self.template is not None:
            return _discover_by_template(self.endpoint, self.template)
        finders: Mapping[str, Callable[[Endpoint, str], PromptDiscovery]] = {
            "llama.cpp": _discover_by_llama_cpp,
            "ollama": _discover_by_ollama,
            "vllm": _discover_by_vllm,
        }
        find = finders.get(self.endpoint.kind)
        if find is None:
            return PromptDiscovery(
                None, f"in words: {self.endpoint.kind} servers do not render templates; pass one with --template"
            )
        return find(self.endpoint, model)


def _discover_by_template(endpoint: Endpoint, worker: TemplateWorker) -> PromptDiscovery:
    def fill(messages: Sequence[JsonObject], tools: Sequence[Json]) -> str | None:
        try:
            return worker.render(messages, tools)
        except ChatTemplateError:
            return None

    source, bos = worker.template.source, worker.template.tokens.get("bos_token", "")
    traits = probe_capabilities(fill)
    if traits is None:
        return PromptDiscovery(None, f"in words: {_explain_failure(worker)}", source)
    return PromptDiscovery(
        TemplatePrompt("template", traits, bos, endpoint.kind), "the model's own, by the given template", source
    )


def _explain_failure(worker: TemplateWorker) -> str:
    """Explain why the user's template cannot be used."""
    try:
        worker.render([{"role": "user", "content": "Hello"}], TOOLS)
    except ChatTemplateError as fault:
        return f"the given template cannot be rendered: {fault}"
    return "the given template does not support tools"


def _discover_by_llama_cpp(endpoint: Endpoint, _model: str) -> PromptDiscovery:
    props = get_object(f"{endpoint.root}/props")
    if not isinstance(props.get("chat_template"), str):
        return PromptDiscovery(None, "in words: llama.cpp does not show its template yet", is_final=False)
    template = props["chat_template"]
    caps = props.get("chat_template_caps")
    if isinstance(caps, dict) and caps.get("supports_tools") is False:
        return PromptDiscovery(None, NO_TOOLS, template)
    answers: list[HttpAnswer | None] = []

    def fill(messages: Sequence[JsonObject], tools: Sequence[Json]) -> str | None:
        request = {"messages": list(messages), "tools": list(tools), "reasoning_format": "none"}
        answers.append(get_json(f"{endpoint.root}/apply-template", request, timeout_s=PROBE_TIMEOUT_S))
        prompt = parse_json_object(answers[-1]).get("prompt")
        return prompt if isinstance(prompt, str) else None

    traits = probe_capabilities(fill)
    if traits is None:
        status = answers[0].status if answers[0] is not None else 503
        if status in (404, 501, 503):
            explanation = "in words: this llama.cpp does not render templates (/apply-template)"
            return PromptDiscovery(None, explanation, template, is_final=status != 503)
        return PromptDiscovery(None, NO_TOOLS, template)
    return PromptDiscovery(
        TemplatePrompt("llama.cpp", traits), "the model's own, by llama.cpp's /apply-template", template
    )


def _discover_by_ollama(endpoint: Endpoint, model: str) -> PromptDiscovery:
    version = str(get_object(f"{endpoint.root}/api/version").get("version") or "")
    numbers = [int(each) for each in version.split(".")[:2] if each.isdigit()]
    if numbers < OLLAMA_VERSION:
        return PromptDiscovery(None, f"in words: Ollama {version} may not show its prompts (0.32 and later do)")
    shows_prompts, is_final = True, True

    def fill(messages: Sequence[JsonObject], tools: Sequence[Json]) -> str | None:
        nonlocal shows_prompts, is_final
        request = build_render_request({"model": model, "messages": list(messages), "tools": list(tools)})
        # An older Ollama would answer the request, so limit the answer to one token.
        answer = get_json(f"{endpoint.root}/api/chat", {**request, "options": {"num_predict": 1}}, timeout_s=LOADING_S)
        is_final = is_final and answer is not None and answer.status in (200, 400)
        info = parse_json_object(answer).get("_debug_info")
        prompt = info.get("rendered_template") if isinstance(info, dict) else None
        shows_prompts = shows_prompts and not (answer is not None and answer.status == 200 and prompt is None)
        return prompt if isinstance(prompt, str) else None

    traits = probe_capabilities(fill)
    if not shows_prompts:
        return PromptDiscovery(None, "in words: this Ollama does not show its prompts")
    if traits is None:
        return PromptDiscovery(None, NO_TOOLS, is_final=is_final)
    return PromptDiscovery(TemplatePrompt("ollama", traits), "the model's own, by Ollama's template")


def _discover_by_vllm(endpoint: Endpoint, model: str) -> PromptDiscovery:
    request: JsonObject = {"model": model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}
    without = _count_prompt_tokens(endpoint, request)
    with_tools = _count_prompt_tokens(endpoint, {**request, "tools": TOOLS, "tool_choice": "none"})
    if not without or not with_tools:
        return PromptDiscovery(None, "in words: vLLM does not report the length of a prompt with tools", is_final=False)
    if with_tools < without + 20:
        return PromptDiscovery(
            None, "in words: vLLM drops tools (because of --exclude-tools-when-tool-choice-none, or the template)"
        )

    def fill(messages: Sequence[JsonObject], tools: Sequence[Json]) -> str | None:
        conversation = {"model": model, "messages": list(messages), "tools": list(tools)}
        tokens = get_object(f"{endpoint.root}/tokenize", conversation, timeout_s=PROBE_TIMEOUT_S).get("tokens")
        if not isinstance(tokens, list):
            return None
        decoded = get_object(
            f"{endpoint.root}/detokenize", {"model": model, "tokens": tokens}, timeout_s=PROBE_TIMEOUT_S
        )
        prompt = decoded.get("prompt")
        return prompt if isinstance(prompt, str) else None

    # The server renders the prompt, so the text that the model wrote cannot be inserted.
    traits = replace(probe_capabilities(fill) or CAREFUL, as_text=False)
    return PromptDiscovery(TemplatePrompt("vllm", traits), 'the model\'s own, by vLLM with tool_choice "none"')


def probe_capabilities(fill: Fill) -> TemplateCapabilities | None:
    """Return the capabilities of the template that ``fill`` renders, or None if it does not support tools."""
    trials = probe_template()
    try:
        trial = next(trials)
        while True:
            trial = trials.send(fill(trial.messages, trial.tools))
    except StopIteration as stop:
        traits: TemplateCapabilities | None = stop.value
        return traits


def render_system_prompt(worker: TemplateWorker, system: str, ask: str, tools: ToolSet) -> tuple[str, str]:
    """Render two prompts for the question ``ask`` at the start of a conversation: one with ``tools``, and one without
    tools. Raises ChatTemplateError if the template rejects the conversation or does not support tools."""
    found = _discover_by_template(Endpoint(""), worker)
    if found.template_prompt is None:
        raise ChatTemplateError(found.reason)
    messages: list[Json] = [{"role": "system", "content": system}, {"role": "user", "content": ask}]
    format = get_format(detect_format(worker.template).format or "hermes")
    prepared = prepare_template_messages(Conversation(messages), found.template_prompt.traits, format, tools).messages
    return worker.render(prepared, prepare_tool_definitions([], tools, format)), worker.render(prepared)


def _count_prompt_tokens(endpoint: Endpoint, request: JsonObject) -> int:
    usage = get_object(f"{endpoint.base_url}/chat/completions", request, timeout_s=PROBE_TIMEOUT_S).get("usage")
    count = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return count if isinstance(count, int) else 0
