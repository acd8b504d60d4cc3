"""The model server behind ours, and what is known of its model."""

from __future__ import annotations

import asyncio
import math
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from adapter.backends.chat_client import constraint_fields
from adapter.backends.context_size import query_context_size
from adapter.backends.control_token_discovery import discover_control_tokens
from adapter.backends.endpoint_discovery import Endpoint, Kind, detect_server_kind, first_model, get_json
from adapter.backends.profiles import setup_lookup
from adapter.backends.prompt_discovery import PromptDiscoverer, PromptDiscovery
from adapter.backends.small_model_check import SmallModelCheck
from adapter.backends.template_detection import detect_format
from adapter.backends.template_files import TemplateWorker
from adapter.core.errors import TransportError
from adapter.core.events import Json, JsonObject
from adapter.prompting.deriving.detect import DetectedFormat
from adapter.prompting.intent.assist import AssistSettings
from adapter.protocols.sse import encode_json, read_json
from adapter.protocols.template_prompt import TemplatePromptError, transport_of
from adapter.protocols.translate import needs_reading
from adapter.protocols.translation_options import TranslationOptions
from adapter.protocols.upstream_failures import refuses_tools
from adapter.server.concurrency_limit import ConcurrencyLimit
from adapter.server.dropped_fields import DroppedFields
from adapter.server.response_store import ResponseStore
from adapter.server.telemetry.logs import log_message
from adapter.server.upstream_connection import SILENCE_S, UpstreamConnection
from adapter.server.upstream_retry import RETRY_S
from adapter.server.work_queue import WorkQueue

KNOWN_FOR_S = 60.0
"""How long what llama.cpp or Ollama said about its models holds."""

MAX_PROMPTS = 64
"""Ways of thinking, and models, that are remembered."""

MAX_TOOLLESS = 1_000
"""Models of which it is remembered that their server takes no tools for them."""

_QUESTION = "generation prompt?"
_SHAPES_PROMPT = ("chat_template_kwargs", "reasoning_effort")
"""Fields of a request by which llama.cpp's templates open reasoning, or not."""


@dataclass(frozen=True, slots=True)
class ServerInfo:
    kind: Kind | None
    options: TranslationOptions


class ModelServer(UpstreamConnection):
    """``options``: what the user chose. ``profile``: of `in_force`. ``places``: for requests that make the model work.
    ``store``: of answers that clients come back to; by itself in memory. The others: of `UpstreamConnection`."""

    def __init__(
        self,
        base_url: str,
        options: TranslationOptions,
        patience_s: float = SILENCE_S,
        profile: str = "none",
        places: ConcurrencyLimit | None = None,
        template: TemplateWorker | None = None,
        retry_s: float = RETRY_S,
        store: ResponseStore | None = None,
    ) -> None:
        super().__init__(base_url, patience_s, template, retry_s)
        self.store = store or ResponseStore()
        self.left_out = DroppedFields()
        self._own = PromptDiscoverer(self.endpoint, template)
        self._prompt_cache: dict[
            str, tuple[PromptDiscovery, AssistSettings | None]
        ] = {}  # what needs no thread, for nobody is asked
        self.places = places or ConcurrencyLimit()
        self.work = WorkQueue()
        self.options = options
        self._profile = profile
        self._guides: SmallModelCheck | None = None
        self._told: list[str] = []
        self._said: set[str] = set()
        self._toolless: set[Json] = set()  # models whose server refused the tools that a profile meant for it
        self._known: ServerInfo | None = None
        self._known_until = 0.0
        self._asking = asyncio.Lock()
        self._prompts: dict[bytes, str | None] = {}

    async def close(self) -> None:
        await super().close()
        self.work.close()
        self.store.close()

    async def options_for(self, body: Json) -> TranslationOptions:
        """How to translate this request: what the user chose, and what is known of the model."""
        known = await self.known()
        options = known.options
        model = body.get("model") if isinstance(body, dict) else None
        if options.prompt.may_be_own and known.kind is not None:
            name = str(model or "")
            settled = self._prompt_cache.get(name)
            found, small = await asyncio.to_thread(self._found, name) if settled is None else settled
            told = self._preferred_format(found.recognised)
            recognised = (told.certain if told is not None else None) or options.prompt.recognised
            template = options.prompt.template or found.template
            options = replace(
                options.with_prompt(own=found.own, template=template, recognised=recognised), assists=small
            )
        if model in self._toolless:
            options = replace(options.for_model(str(model)), native=False, setup_of=None)
        chosen = options.prompt
        if chosen.generation_prompt is None and chosen.template is not None and known.kind == "llama.cpp":
            prompt = await self._generation_prompt(body)
            # Raw text, to be read by us: else llama.cpp splits off reasoning by rules of its own, or not.
            options = replace(options.with_prompt(generation_prompt=prompt), fields={"reasoning_format": "none"})
        return options

    async def leaves_markup(self, body: JsonObject) -> bool:
        """Whether an answer to a request that goes on as it is has to be read; see `needs_reading`."""
        if not needs_reading(body, self.options, splits=False):
            return False
        splits = (await self.known()).kind in ("llama.cpp", "ollama")
        return needs_reading(body, self.options, splits=splits)

    def _found(self, model: str) -> tuple[PromptDiscovery, AssistSettings | None]:
        """How ``model`` gets its own prompt, and the help to choose where it gets none; said when it is new."""
        found = self._own.discover(model)
        of_model = f" of {model}" if model and self._own.endpoint.kind == "ollama" else ""
        self._tell_once(f"prompt{of_model}: {found.explanation}")
        self._tell_format(self._preferred_format(found.recognised), of_model)
        small = self._guided(self._own.endpoint, model, found)
        if found.is_final:
            if len(self._prompt_cache) >= MAX_PROMPTS:
                self._prompt_cache.clear()
            self._prompt_cache[model] = (found, small)
        return found, small

    def _preferred_format(self, told: DetectedFormat | None) -> DetectedFormat | None:
        return told.from_template() if told is not None and self.options.prompt.from_template else told

    def _tell_format(self, told: DetectedFormat | None, of_model: str = "") -> None:
        """What was derived, for nobody chose it; a table's name says nothing new."""
        if told is not None and (told.by == "template" or self.options.prompt.from_template):
            self._tell_once(f"format{of_model}: {told}")

    def _guided(self, endpoint: Endpoint, model: str, found: PromptDiscovery) -> AssistSettings | None:
        if found.own is not None or self.options.constraints.mode is not None:
            return None
        guides = self._guides = self._guides or SmallModelCheck(endpoint, self.options.guide)
        small = guides.assists_for(model)
        if small is not None:
            self._tell_once(guides.explanation(model if endpoint.kind == "ollama" else ""))
        return small

    def log_prompt_mode(self) -> None:
        """Say at the start who will describe the tools, as far as nothing has to be loaded to know that."""
        if not self.options.prompt.may_be_own:
            self._tell_once("prompt: in words, as asked for")
            return
        kind = detect_server_kind(self.endpoint.base_url)
        if kind is not None and (kind != "ollama" or self._template is not None):
            endpoint = Endpoint(self.endpoint.base_url, kind)
            found = PromptDiscoverer(endpoint, self._template).discover(first_model(endpoint))
            self._tell_once(f"prompt: {found.explanation}")
            self._guided(endpoint, "", found)

    def _tell_once(self, note: str) -> None:
        if note not in self._said:
            if len(self._said) >= MAX_TOOLLESS:
                self._said.clear()
            self._said.add(note)
            log_message(note)

    def log_prompt_fallback(self, fault: TemplatePromptError, body: JsonObject) -> None:
        """Say that a request goes in words, because its own prompt could not be had."""
        self._tell_once(f"a prompt of the model's own ({transport_of(body)}) was refused, so it went in words: {fault}")

    def refuses_tools(self, status: int, said: bytes, model: Json) -> bool:
        """Whether the server has no tool calling of its own for ``model``: then its tools go as text from now on."""
        if not refuses_tools(status, said.decode("utf-8", "replace")):
            return False
        if model not in self._toolless:
            if len(self._toolless) >= MAX_TOOLLESS:
                self._toolless.clear()
            self._toolless.add(model)
            log_message(f"the model server takes no tools for {model}: they are described in the prompt")
        return True

    async def _generation_prompt(self, body: Json) -> str | None:
        """The end of llama.cpp's prompt; None where it does not say. Asked once for each way of thinking."""
        given = {key: body[key] for key in _SHAPES_PROMPT if key in body} if isinstance(body, dict) else {}
        content = encode_json({"messages": [{"role": "user", "content": _QUESTION}], **given})
        if content not in self._prompts:
            if len(self._prompts) >= MAX_PROMPTS:
                self._prompts.clear()
            self._prompts[content] = None
            with suppress(TransportError, ValueError):
                response = await self.send("POST", "/apply-template", content, {"Content-Type": "application/json"})
                answer = read_json(await self.body_of(response))
                if isinstance(answer, dict) and isinstance(prompt := answer.get("prompt"), str):
                    self._prompts[content] = prompt.rpartition(_QUESTION)[2]
        return self._prompts[content]

    async def known(self) -> ServerInfo:
        """What the server is and how its model writes calls. Asks it, but not each time."""
        async with self._asking:
            now = asyncio.get_running_loop().time()
            if self._known is None or now > self._known_until:
                self._known = await asyncio.to_thread(self._ask_about, self._known)
                self._prompts.clear()
                self._known_until = now + self._holds_for_s(self._known)
            return self._known

    def _ask_about(self, before: ServerInfo | None) -> ServerInfo:
        kind = (before.kind if before else None) or detect_server_kind(self.endpoint.base_url)
        options, props = self.options, None
        if kind is not None:
            options = options.with_constraints(enforce=partial(constraint_fields, kind))
        options = options.with_constraints(waits_for_calls=kind == "llama.cpp")
        if kind == "llama.cpp":
            answer = get_json(f"{self.endpoint.root}/props", timeout_s=2.0)
            if before is not None and (answer is None or answer.status != 200):
                return before  # too busy to say
            props = answer.body if answer is not None and isinstance(answer.body, dict) else {}
            options = _with_props(options, props)
            prompt = options.prompt
            if prompt.template is not None and prompt.format is None:
                told = self._preferred_format(detect_format(prompt.template, prompt.model))
                options = options.with_prompt(recognised=told.certain if told is not None else None)
                self._tell_format(told)
            if before is not None and before.options.prompt.template != prompt.template:
                self._own.forget()
                self._prompt_cache.clear()
                self._guides = None
        if kind is not None:
            endpoint = self._own.endpoint = Endpoint(self.endpoint.base_url, kind)
            setup_of, notes = setup_lookup(self._profile, endpoint)
            tokens = discover_control_tokens(endpoint, self._template, props)
            options = replace(options.with_prompt(control_tokens=tokens), setup_of=setup_of)
            advice = query_context_size(endpoint).advice
            self._tell([*notes, advice] if advice else notes)
        return ServerInfo(kind, options)

    def _tell(self, notes: list[str]) -> None:
        """What is new among ``notes``, on stderr."""
        for note in notes:
            if note not in self._told:
                log_message(note)
        self._told = notes

    def _holds_for_s(self, known: ServerInfo) -> float:
        """Somebody may restart llama.cpp with another model; what is not up yet is asked again at once."""
        if known.kind == "llama.cpp":
            return KNOWN_FOR_S if known.options.prompt.template else 0.0
        if known.kind == "ollama":
            return KNOWN_FOR_S  # which model it has loaded, and with what context, changes
        return math.inf if known.kind else 0.0


def _with_props(options: TranslationOptions, props: JsonObject) -> TranslationOptions:
    """llama.cpp has one model, whatever requests call it: its template and file name tell."""
    template, path = props.get("chat_template"), props.get("model_path")
    return options.with_prompt(
        template=template if isinstance(template, str) else None,
        model=os.path.basename(path) if isinstance(path, str) else None,  # noqa: PTH119  # a path of the server's
    )
