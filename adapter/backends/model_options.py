"""Complete the user's options with the properties that the model server reports about itself and its models.

The functions block while they query the server.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from adapter.backends.chat_client import build_constraint_fields
from adapter.backends.context_size import ContextSize, query_context_size
from adapter.backends.control_token_discovery import discover_control_tokens
from adapter.backends.endpoint_discovery import (
    Endpoint,
    Kind,
    detect_server_kind,
    find_first_model,
    get_json,
    parse_json_object,
)
from adapter.backends.format_derivation import detect_format
from adapter.backends.probe_profiles import build_setup_lookup
from adapter.backends.prompt_discovery import PromptDiscoverer, PromptDiscovery
from adapter.backends.small_model_detection import SmallModelCheck
from adapter.backends.template_files import TemplateWorker
from adapter.core.events import Json, JsonObject
from adapter.prompting.deriving.format_detection import DetectedFormat
from adapter.prompting.intent.guided_choice import GuidedChoiceSettings
from adapter.protocols.answer_translation import BufferedExchange, StreamedExchange
from adapter.protocols.media_parts import AUDIO, IMAGE
from adapter.protocols.reasoning_budget import VLLM_FIELD
from adapter.protocols.template_prompt import TemplatePromptError, find_transport
from adapter.protocols.translation_options import RejectedFeatures, TranslationOptions
from adapter.protocols.upstream_failures import refuses_schemas, refuses_tools

KNOWN_FOR_S = 60.0
"""Seconds after which the models of llama.cpp or Ollama are queried again."""

MAX_PROMPTS = 64
"""Maximum number of models with cached prompts, and maximum number of cached generation prompts."""

_QUESTION = "generation prompt?"
_SHAPES_PROMPT = ("chat_template_kwargs", "reasoning_effort")
"""Request fields that decide whether a prompt rendered by llama.cpp ends inside a reasoning block."""

MAX_TOOLLESS = 1_000
"""Maximum number of cached names of models without native tool calls."""

MAX_LOGGED = 1_000
"""Maximum number of logged notes to remember. A remembered note is not logged again."""


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """The detected properties of the model server.

    ``has_images`` is True if llama.cpp reports that its model accepts images. ``context_tokens`` is the context size,
    or None if unknown.
    """

    kind: Kind | None
    options: TranslationOptions
    has_images: bool = False
    context_tokens: int | None = None

    @property
    def lifetime_s(self) -> float:
        """Seconds for which this information is valid: 0 while the server is not ready and its model is unknown."""
        if self.kind == "llama.cpp":
            return KNOWN_FOR_S if self.options.prompt.template else 0.0
        if self.kind == "ollama":
            return KNOWN_FOR_S  # its loaded models and their context size change
        return math.inf if self.kind else 0.0


class ModelOptions:
    """Detects the options for each model of the server at ``base_url``.

    ``options`` are the user's options. ``profile`` selects measured model setups, as for `build_setup_lookup`.
    ``template`` is the user's chat template, and ``log`` is called with notes for the user.
    """

    def __init__(
        self, base_url: str, options: TranslationOptions, profile: str, template: TemplateWorker | None,
        log: Callable[[str], object],
    ) -> None:  # fmt: skip
        self._base_url, self._profile = base_url, profile
        self._options = replace(options, rejected=RejectedFeatures())
        self._template, self._log = template, log
        self._prompts = PromptDiscoverer(Endpoint(base_url), template)
        self._found: dict[str, tuple[PromptDiscovery, GuidedChoiceSettings | None]] = {}
        self._generation_prompts: dict[str, str | None] = {}
        self._model_check: SmallModelCheck | None = None
        self._logged: set[str] = set()

    def detect(self, before: ServerInfo | None = None) -> ServerInfo:
        """Return the properties of the server, and the options for all its models. ``before`` is the previous result,
        which is returned again if llama.cpp is too busy to answer."""
        self._generation_prompts.clear()
        kind = (before.kind if before else None) or detect_server_kind(self._base_url)
        options, props, size = replace(self._options, kind=kind), None, ContextSize()
        if kind is not None:
            options = options.with_constraints(enforce=partial(build_constraint_fields, kind))
        options = options.with_constraints(waits_for_calls=kind == "llama.cpp")
        if kind == "llama.cpp":
            answer = get_json(f"{Endpoint(self._base_url).root}/props")
            if before is not None and (answer is None or answer.status != 200):
                return before  # too busy to answer
            props = answer.body if answer is not None and isinstance(answer.body, dict) else {}
            options = _with_props(options, props)
            prompt = options.prompt
            if prompt.template is not None and prompt.format is None:
                detected = self._choose_preferred_format(detect_format(prompt.template, prompt.model))
                options = options.with_prompt(recognized=detected.certain if detected is not None else None)
                self._log_format(detected)
            if before is not None and before.options.prompt.template != prompt.template:
                self._prompts.forget()
                self._found.clear()
                self._model_check = None
        if kind is not None:
            endpoint = self._prompts.endpoint = Endpoint(self._base_url, kind)
            setup_of, notes = build_setup_lookup(self._profile, endpoint)
            tokens = discover_control_tokens(endpoint, self._template, props)
            options = replace(options.with_prompt(control_tokens=tokens), setup_of=setup_of)
            size = query_context_size(endpoint)
            for note in [*notes, size.advice] if size.advice else notes:
                self.log_once(note)
        modalities = (props or {}).get("modalities")
        reported = modalities if isinstance(modalities, dict) else {}
        unsupported = {each for each, key in ((IMAGE, "vision"), (AUDIO, "audio")) if reported.get(key) is False}
        budgets = options.budgets.with_context_size(size.tokens)
        options = replace(options, unsupported_media=frozenset(unsupported), budgets=budgets)
        return ServerInfo(kind, options, reported.get("vision") is True, size.tokens)

    def find_alternative(
        self, exchange: BufferedExchange | StreamedExchange, status: int, content: bytes
    ) -> JsonObject | None:
        """Return a failed request without the part that the server rejected: the tools, or the reasoning budget, which
        vLLM rejects without ``--reasoning-parser``. Return None for other errors.

        ``status`` and ``content`` are the server's response."""
        if status >= 400 and VLLM_FIELD.encode() in content and (body := exchange.remove_budget()) is not None:
            self._options.rejected.rejects_budget = True
            self.log_once("vLLM has no --reasoning-parser, so reasoning budgets are applied here, to streamed answers")
            return body
        is_refused = self.refuses_tools(status, content, exchange.request.body.get("model"))
        lacks_grammar = exchange.request.is_native and refuses_schemas(status, content.decode("utf-8", "replace"))
        return exchange.switch_to_text() if is_refused or lacks_grammar else None

    def log_prompt_fallback(self, error: TemplatePromptError, body: JsonObject) -> None:
        """Log that a request is sent with a generated prompt, because the model's chat template failed."""
        self.log_once(f"the chat template ({find_transport(body)}) failed, so a generated prompt was sent: {error}")

    def refuses_tools(self, status: int, content: bytes, model: Json) -> bool:
        """Return whether the server rejected the tools. If so, later prompts for ``model`` are generated."""
        if not refuses_tools(status, content.decode("utf-8", "replace")):
            return False
        toolless = self._options.rejected.toolless
        if len(toolless) >= MAX_TOOLLESS:
            toolless.clear()
        toolless.add(str(model or ""))
        self.log_once(f"the model server does not support tools for {model}; they are now described in the prompt")
        return True

    def is_known(self, options: TranslationOptions, body: Json) -> bool:
        """Return whether `complete` can answer without querying the server."""
        model = _get_model(body)
        if options.kind is not None and options.prompt.may_use_template and model not in self._found:
            return False
        options = self._with_prompt(options, model)
        return not _needs_generation_prompt(options) or _encode_render_request(body) in self._generation_prompts

    def complete(self, options: TranslationOptions, body: Json) -> TranslationOptions:
        """Add to the detected ``options`` the prompt for the requested model, guided choice if the model is small, and
        llama.cpp's generation prompt."""
        options = self._with_prompt(options, _get_model(body))
        if not _needs_generation_prompt(options):
            return options
        prompt = self._find_generation_prompt(_encode_render_request(body))
        # request raw text, because llama.cpp could separate the reasoning by rules of its own
        return replace(options.with_prompt(generation_prompt=prompt), fields={"reasoning_format": "none"})

    def _find_generation_prompt(self, question: str) -> str | None:
        """Return the generation prompt: the text that llama.cpp renders after the last message. Return None if it is
        not available. ``question`` is the rendering request, which differs only in its reasoning settings."""
        if question not in self._generation_prompts:
            if len(self._generation_prompts) >= MAX_PROMPTS:
                self._generation_prompts.clear()
            answer = get_json(f"{Endpoint(self._base_url).root}/apply-template", json.loads(question))
            prompt = parse_json_object(answer).get("prompt")
            found = prompt.rpartition(_QUESTION)[2] if isinstance(prompt, str) else None
            self._generation_prompts[question] = found
        return self._generation_prompts[question]

    def _with_prompt(self, options: TranslationOptions, model: str) -> TranslationOptions:
        if options.kind is None or not options.prompt.may_use_template:
            return options
        discovery, guided_choice = self._found.get(model) or self._discover(model)
        detected = self._choose_preferred_format(discovery.recognized)
        recognized = (detected.certain if detected is not None else None) or options.prompt.recognized
        template = options.prompt.template or discovery.template
        return replace(
            options.with_prompt(template_prompt=discovery.template_prompt, template=template, recognized=recognized),
            guided_choice=guided_choice,
        )

    def _discover(self, model: str) -> tuple[PromptDiscovery, GuidedChoiceSettings | None]:
        """Return the prompt for ``model``, and the settings of guided tool choice if the model needs it and its chat
        template cannot be used. Log both once."""
        discovery = self._prompts.discover(model)
        of_model = f" of {model}" if model and self._prompts.endpoint.kind == "ollama" else ""
        self.log_once(f"prompt{of_model}: {discovery.explanation}")
        self._log_format(self._choose_preferred_format(discovery.recognized), of_model)
        guided_choice = self._find_guided_choice(self._prompts.endpoint, model, discovery)
        if discovery.is_final:
            if len(self._found) >= MAX_PROMPTS:
                self._found.clear()
            self._found[model] = (discovery, guided_choice)
        return discovery, guided_choice

    def _choose_preferred_format(self, detected: DetectedFormat | None) -> DetectedFormat | None:
        return detected.from_template() if detected is not None and self._options.prompt.from_template else detected

    def _log_format(self, detected: DetectedFormat | None, of_model: str = "") -> None:
        """Log the format if it was derived from a template. A format known from the model's name is not logged."""
        if detected is not None and (detected.by == "template" or self._options.prompt.from_template):
            self.log_once(f"format{of_model}: {detected}")

    def _find_guided_choice(
        self, endpoint: Endpoint, model: str, discovery: PromptDiscovery
    ) -> GuidedChoiceSettings | None:
        if discovery.template_prompt is not None or self._options.constraints.mode is not None:
            return None
        check = self._model_check = self._model_check or SmallModelCheck(endpoint, self._options.guide)
        guided_choice = check.find_guided_choice(model)
        if guided_choice is not None:
            self.log_once(check.explain(model if endpoint.kind == "ollama" else ""))
        return guided_choice

    def log_prompt_mode(self) -> None:
        """Log how tools are described, if that can be found out without loading a model."""
        if not self._options.prompt.may_use_template:
            self.log_once("prompt: generated (as requested)")
            return
        kind = detect_server_kind(self._base_url)
        if kind is not None and (kind != "ollama" or self._template is not None):
            endpoint = Endpoint(self._base_url, kind)
            discovery = PromptDiscoverer(endpoint, self._template).discover(find_first_model(endpoint))
            self.log_once(f"prompt: {discovery.explanation}")
            self._find_guided_choice(endpoint, "", discovery)

    def log_once(self, note: str) -> None:
        if note not in self._logged:
            if len(self._logged) >= MAX_LOGGED:
                self._logged.clear()
            self._logged.add(note)
            self._log(note)


def _get_model(body: Json) -> str:
    return str(body.get("model") or "") if isinstance(body, dict) else ""


def _needs_generation_prompt(options: TranslationOptions) -> bool:
    prompt = options.prompt
    return options.kind == "llama.cpp" and prompt.template is not None and prompt.generation_prompt is None


def _encode_render_request(body: Json) -> str:
    """Return the request, as JSON, that renders a one-message chat with the reasoning settings of ``body``."""
    settings = {key: body[key] for key in _SHAPES_PROMPT if key in body} if isinstance(body, dict) else {}
    return json.dumps({"messages": [{"role": "user", "content": _QUESTION}], **settings})


def _with_props(options: TranslationOptions, props: JsonObject) -> TranslationOptions:
    """Return the options completed with the chat template and the file name of llama.cpp's only model. llama.cpp
    answers requests with any model name."""
    template, path = props.get("chat_template"), props.get("model_path")
    return options.with_prompt(
        template=template if isinstance(template, str) else None,
        model=os.path.basename(path) if isinstance(path, str) else None,  # noqa: PTH119  # a path of the server's
    )
