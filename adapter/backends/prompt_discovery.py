"""Finds out how a model gets the prompt that its own template makes, on the server at hand, or why it cannot.

It is tried, not believed: the template is filled with a few short conversations (`adapter.prompting.template_capabilities`), by the
server where that can. Of vLLM, which shows no prompt, the count of tokens tells whether tools go into it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from adapter.backends.endpoint_discovery import MAX_MODELS, Endpoint, HttpAnswer, get_json
from adapter.backends.template_detection import detect_format
from adapter.backends.template_files import TemplateWorker
from adapter.core.events import Json, JsonObject
from adapter.parsing.formats import get_format, guess_format
from adapter.prompting.chat_template import ChatTemplateError
from adapter.prompting.deriving.detect import DetectedFormat
from adapter.prompting.template_capabilities import CAREFUL, TOOLS, TemplateCapabilities, probe_template
from adapter.protocols.ollama import render_request
from adapter.protocols.template_messages import template_messages, template_tool_definitions
from adapter.protocols.template_prompt import TemplatePrompt
from adapter.tools.tool import ToolSet

ASKING_S = 30.0
"""How long a server may take for a prompt that is tried: it may be reading another."""

LOADING_S = 300.0
"""How long Ollama may take to load the model, which it does before it fills the template."""

SHOWS_PROMPTS = [0, 32]
"""The Ollama in which this was seen; one that does not know the field would load the model and answer."""

NO_PLACE = "the model's chat template has no place for tools"


@dataclass(frozen=True, slots=True)
class PromptDiscovery:
    """``own``: None where the tools go as words. ``told``: which way, and why no better one, for people. ``template``:
    the template's text, where somebody shows it. ``is_sure``: asking again would not change it. ``recognised``: the
    format that fits the template; None without one."""

    own: TemplatePrompt | None
    explanation: str
    template: str | None = None
    is_final: bool = True
    recognised: DetectedFormat | None = None

    def format_of(self, model: str) -> str | None:
        """The name of the format, by the template where there is one, else by the model's name."""
        return self.recognised.format if self.recognised is not None else guess_format(model)


Fill: TypeAlias = Callable[[Sequence[JsonObject], Sequence[Json]], str | None]
"""A prompt of messages and tools; None where the template refuses them."""


class PromptDiscoverer:
    """For the models of ``endpoint``. ``template``: the one that the user named, for all of them."""

    def __init__(self, endpoint: Endpoint, template: TemplateWorker | None = None) -> None:
        self.endpoint, self.template = endpoint, template
        self._found: dict[str, PromptDiscovery] = {}
        self._asking = threading.Lock()

    def discover(self, model: str) -> PromptDiscovery:
        """For ``model``. Asks the server, the first time."""
        name = "" if self.endpoint.kind == "llama.cpp" else model
        with self._asking:
            found = self._found.get(name)
            if found is None:
                found = self._find(model)
                if found.template is not None:
                    named = self.template.template if self.template is not None else found.template
                    found = replace(found, recognised=detect_format(named, model))
                if found.is_final:
                    if len(self._found) >= MAX_MODELS:
                        self._found.clear()
                    self._found[name] = found
            return found

    def forget(self) -> None:
        """Ask anew: the server may have another model."""
        with self._asking:
            self._found.clear()

    def _find(self, model: str) -> PromptDiscovery:
        if self.template is not None:
            return _by_template(self.endpoint, self.template)
        finders: Mapping[str, Callable[[Endpoint, str], PromptDiscovery]] = {
            "llama.cpp": _by_llama_cpp,
            "ollama": _by_ollama,
            "vllm": _by_vllm,
        }
        find = finders.get(self.endpoint.kind)
        if find is None:
            return PromptDiscovery(
                None, f"in words: a server of kind {self.endpoint.kind} fills no template; name one with --template"
            )
        return find(self.endpoint, model)


def _by_template(endpoint: Endpoint, process: TemplateWorker) -> PromptDiscovery:
    def fill(messages: Sequence[JsonObject], tools: Sequence[Json]) -> str | None:
        try:
            return process.render(messages, tools)
        except ChatTemplateError:
            return None

    source, bos = process.template.source, process.template.tokens.get("bos_token", "")
    traits = probe_capabilities(fill)
    if traits is None:
        return PromptDiscovery(None, f"in words: {_why_not(process)}", source)
    return PromptDiscovery(
        TemplatePrompt("template", traits, bos, endpoint.kind), "the model's own, by the named template", source
    )


def _why_not(process: TemplateWorker) -> str:
    """Of a template that the user named: what it says to the simplest conversation there is."""
    try:
        process.render([{"role": "user", "content": "Hello"}], TOOLS)
    except ChatTemplateError as fault:
        return f"the named template cannot be filled: {fault}"
    return "the named template has no place for tools"


def _by_llama_cpp(endpoint: Endpoint, _model: str) -> PromptDiscovery:
    props = _body(get_json(f"{endpoint.root}/props", 2.0))
    if not isinstance(props.get("chat_template"), str):
        return PromptDiscovery(None, "in words: llama.cpp does not show its template yet", is_final=False)
    template = props["chat_template"]
    caps = props.get("chat_template_caps")
    if isinstance(caps, dict) and caps.get("supports_tools") is False:
        return PromptDiscovery(None, f"in words: {NO_PLACE}", template)
    answers: list[HttpAnswer | None] = []

    def fill(messages: Sequence[JsonObject], tools: Sequence[Json]) -> str | None:
        asked = {"messages": list(messages), "tools": list(tools), "reasoning_format": "none"}
        answers.append(get_json(f"{endpoint.root}/apply-template", ASKING_S, asked))
        prompt = _body(answers[-1]).get("prompt")
        return prompt if isinstance(prompt, str) else None

    traits = probe_capabilities(fill)
    if traits is None:
        status = answers[0].status if answers[0] is not None else 503
        if status in (404, 501, 503):
            told = "in words: this llama.cpp fills no templates (/apply-template)"
            return PromptDiscovery(None, told, template, is_final=status != 503)
        return PromptDiscovery(None, f"in words: {NO_PLACE}", template)
    return PromptDiscovery(
        TemplatePrompt("llama.cpp", traits), "the model's own, by llama.cpp's /apply-template", template
    )


def _by_ollama(endpoint: Endpoint, model: str) -> PromptDiscovery:
    version = str(_body(get_json(f"{endpoint.root}/api/version", 2.0)).get("version") or "")
    numbers = [int(each) for each in version.split(".")[:2] if each.isdigit()]
    if numbers < SHOWS_PROMPTS:
        return PromptDiscovery(None, f"in words: Ollama {version} may not show its prompts (0.32 and later do)")
    shows_prompts, is_sure = True, True

    def fill(messages: Sequence[JsonObject], tools: Sequence[Json]) -> str | None:
        nonlocal shows_prompts, is_sure
        asked = render_request({"model": model, "messages": list(messages), "tools": list(tools)})
        # An older Ollama would answer the request instead: with one token, then.
        answer = get_json(f"{endpoint.root}/api/chat", LOADING_S, {**asked, "options": {"num_predict": 1}})
        is_sure = is_sure and answer is not None and answer.status in (200, 400)
        info = _body(answer).get("_debug_info")
        prompt = info.get("rendered_template") if isinstance(info, dict) else None
        shows_prompts = shows_prompts and not (answer is not None and answer.status == 200 and prompt is None)
        return prompt if isinstance(prompt, str) else None

    traits = probe_capabilities(fill)
    if not shows_prompts:
        return PromptDiscovery(None, "in words: this Ollama does not show its prompts")
    if traits is None:
        return PromptDiscovery(None, f"in words: {NO_PLACE}", is_final=is_sure)
    return PromptDiscovery(TemplatePrompt("ollama", traits), "the model's own, by Ollama's template")


def _by_vllm(endpoint: Endpoint, model: str) -> PromptDiscovery:
    asked = {"model": model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}
    without = _prompt_tokens(get_json(f"{endpoint.base_url}/chat/completions", ASKING_S, asked))
    tools = {"tools": TOOLS, "tool_choice": "none"}
    answer = get_json(f"{endpoint.base_url}/chat/completions", ASKING_S, {**asked, **tools})
    with_tools = _prompt_tokens(answer)
    if not without or not with_tools:
        return PromptDiscovery(None, "in words: vLLM does not say how long a prompt with tools is", is_final=False)
    if with_tools < without + 20:
        return PromptDiscovery(
            None, "in words: vLLM leaves tools out (its --exclude-tools-when-tool-choice-none, or the template)"
        )

    def fill(messages: Sequence[JsonObject], tools: Sequence[Json]) -> str | None:
        conversation = {"model": model, "messages": list(messages), "tools": list(tools)}
        counted = _body(get_json(f"{endpoint.root}/tokenize", ASKING_S, conversation)).get("tokens")
        if not isinstance(counted, list):
            return None
        shown = _body(get_json(f"{endpoint.root}/detokenize", ASKING_S, {"model": model, "tokens": counted})).get(
            "prompt"
        )
        return shown if isinstance(shown, str) else None

    # Nobody can put what the model wrote into a prompt that is made there.
    traits = replace(probe_capabilities(fill) or CAREFUL, as_text=False)
    return PromptDiscovery(TemplatePrompt("vllm", traits), 'the model\'s own, by vLLM with tool_choice "none"')


def probe_capabilities(fill: Fill) -> TemplateCapabilities | None:
    """The traits of the template that ``fill`` fills; None where it has no place for tools."""
    trials = probe_template()
    try:
        trial = next(trials)
        while True:
            trial = trials.send(fill(trial.messages, trial.tools))
    except StopIteration as stop:
        traits: TemplateCapabilities | None = stop.value
        return traits


def render_system_prompt(process: TemplateWorker, system: str, ask: str, tools: ToolSet) -> tuple[str, str]:
    """The prompt of a first question with ``tools``, and the same without them.

    Raises TemplateFault where the template refuses them, or has no place for them.
    """
    found = _by_template(Endpoint(""), process)
    if found.own is None:
        raise ChatTemplateError(found.explanation.removeprefix("in words: "))
    messages: list[Json] = [{"role": "system", "content": system}, {"role": "user", "content": ask}]
    format = get_format(detect_format(process.template).format or "hermes")
    told = template_messages(messages, found.own.traits, format, tools).messages
    return process.render(told, template_tool_definitions([], tools, format)), process.render(told)


def _prompt_tokens(answer: HttpAnswer | None) -> int:
    usage = _body(answer).get("usage")
    count = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return count if isinstance(count, int) else 0


def _body(answer: HttpAnswer | None) -> JsonObject:
    return answer.body if answer is not None and answer.status == 200 and isinstance(answer.body, dict) else {}
