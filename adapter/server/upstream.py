"""The model server behind ours: how it is reached, and what is known of its model."""

from __future__ import annotations

import asyncio
import math
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import aiohttp
import yarl

from adapter.deriving.recognising import Recognised
from adapter.probing.profiles import setups
from adapter.prompting.choosing import Parts
from adapter.prompting.rendering import TemplateFault
from adapter.server.patience import RETRY_S, patiently
from adapter.server.places import Places
from adapter.server.work import Work
from adapter.text.secrets import REDACTED
from adapter.upstream.context import context_of
from adapter.upstream.deriving import recognise_format
from adapter.upstream.endpoints import BUILT_IN, START_ONE, Answer, Endpoint, Kind, first_model, get, key_for, recognise
from adapter.upstream.guides import Guides
from adapter.upstream.own_prompts import Found, OwnPrompts
from adapter.upstream.template_files import TemplateProcess
from adapter.upstream.transport import constraint_fields
from adapter.values.errors import TransportError
from adapter.values.events import Json, JsonObject
from adapter.wire.answer import DIED
from adapter.wire.failures import refuses_tools
from adapter.wire.own_prompt import Post, PromptFault, Render, sending, way_of
from adapter.wire.request import Options
from adapter.wire.sse import as_json, read_json

SILENCE_S = 600.0
"""How long a model server may stay silent; reading a long prompt takes a slow machine minutes."""

KNOWN_FOR_S = 60.0
"""How long what llama.cpp or Ollama said about its models holds."""

MAX_ANSWER_BYTES = 32 * 1024 * 1024
"""Of an answer that has to be whole before it is translated."""

MAX_PROMPTS = 64
"""Ways of thinking that are remembered."""

MAX_TOOLLESS = 1_000
"""Models of which it is remembered that their server takes no tools for them."""

_QUESTION = "generation prompt?"
_SHAPES_PROMPT = ("chat_template_kwargs", "reasoning_effort")
"""Fields of a request by which llama.cpp's templates open reasoning, or not."""

_JSON = {"Content-Type": "application/json", "Accept-Encoding": "identity"}

_NO_ANSWER = START_ONE.replace(f"; or {BUILT_IN}", "")


@dataclass(frozen=True, slots=True)
class Known:
    kind: Kind | None
    options: Options


class UpstreamError(TransportError):
    """``status``: what a proxy says then, 502 or 504."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class KeyRemover:
    """Takes text in any pieces and gives it with ``key`` made unreadable; what may be its beginning is held back."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        if not self._key:
            return piece
        text = (self._held + piece).replace(self._key, f"{REDACTED}]".encode())
        ends = range(min(len(self._key) - 1, len(text)), 0, -1)
        held = next((size for size in ends if text.endswith(self._key[:size])), 0)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]

    def close(self) -> bytes:
        return self._held


class Upstream:
    """``base_url``: of its OpenAI-compatible interface. ``options``: what the user chose. ``patience_s``: how
    long it may say nothing. ``retry_s``: as of `patiently`. ``profile``: of `in_force`. ``places``: for requests that
    make the model work. ``template``: the user's, for the model's own prompt.

    Its key is ``OPENAI_API_KEY``, unless it is on this machine; that of a client is never handed on.
    """

    def __init__(
        self,
        base_url: str,
        options: Options,
        patience_s: float = SILENCE_S,
        profile: str = "none",
        places: Places | None = None,
        template: TemplateProcess | None = None,
        retry_s: float = RETRY_S,
    ) -> None:
        self.endpoint = Endpoint(base_url)
        self._template = template
        self._own = OwnPrompts(self.endpoint, template)
        self.places = places or Places()
        self.work = Work()
        self.patience_s = patience_s
        self._retry_s = retry_s
        self._options = options
        self._profile = profile
        self._guides: Guides | None = None
        self._told: list[str] = []
        self._said: set[str] = set()
        self._toolless: set[Json] = set()  # models whose server refused the tools that a profile meant for it
        self._known: Known | None = None
        self._known_until = 0.0
        self._asking = asyncio.Lock()
        self._session: aiohttp.ClientSession | None = None
        self._prompts: dict[bytes, str | None] = {}
        key = self._key = key_for(self.endpoint)
        self._own_headers = {"Authorization": f"Bearer {key}"} if key else {}

    async def open(self) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            auto_decompress=False,  # what passes through keeps its encoding
            trust_env=not self.endpoint.is_local,  # HTTP_PROXY is not meant for this machine
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
        self.work.close()
        if self._template is not None:
            self._template.close()

    def url(self, path: str) -> str:
        """Where the model server has what our clients call ``path``."""
        return self.endpoint.base_url + path[3:] if path.startswith("/v1/") else self.endpoint.root + path

    @property
    def has_key(self) -> bool:
        return self._key is not None

    def without_key(self, content: bytes) -> bytes:
        """What the server said, for clients: it may repeat the key that it was sent."""
        remover = self.key_remover()
        return remover.feed(content) + remover.close()

    def key_remover(self) -> KeyRemover:
        """The same for what comes in pieces."""
        return KeyRemover((self._key or "").encode())

    async def ask(self, path: str, body: JsonObject, *, is_watched: bool = False) -> aiohttp.ClientResponse:
        """Post ``body``; the response's head has come, its content has not. ``is_watched``: as of `send`.

        Raises PromptFault where the model's own prompt cannot be had.
        """
        steps = sending(path, body)
        try:
            step = next(steps)
            while True:
                step = steps.send(await self._performed(step))
        except StopIteration as stop:
            last: Post = stop.value
        content = as_json(last.body)
        return await self.send("POST", last.path, content, _JSON, is_watched=is_watched, is_patient=True)

    async def _performed(self, step: Post | Render) -> Json:
        """What a step on the way to an answer gives; None where that is no JSON."""
        if isinstance(step, Render):
            return await asyncio.to_thread(self._rendered, step)
        response = await self.send("POST", step.path, as_json(step.body), _JSON)
        try:
            return read_json(await self.body_of(response))
        except ValueError:
            return None
        finally:
            response.close()

    def _rendered(self, step: Render) -> str:
        if self._template is None:
            raise PromptFault("no template was named")
        try:
            return self._template.render(step.messages, step.tools, step.variables)
        except TemplateFault as fault:
            raise PromptFault(str(fault)) from fault

    async def send(
        self,
        method: str,
        path: str,
        content: bytes,
        headers: Mapping[str, str],
        *,
        is_watched: bool = False,
        is_patient: bool = False,
    ) -> aiohttp.ClientResponse:
        """Raises UpstreamError where nothing answers. ``is_watched``: the caller has an eye on its silence.
        ``is_patient``: a server that starts, loads or is busy is asked again."""

        async def once() -> aiohttp.ClientResponse:
            try:
                return await self._request(method, path, content, headers, is_watched)
            except aiohttp.ClientOSError as error:
                if isinstance(error, aiohttp.ClientConnectorError):
                    raise
                # llama.cpp closes a connection after its hundredth request, without a word.
                return await self._request(method, path, content, headers, is_watched)

        try:
            return await (patiently(once, self._retry_s) if is_patient else once())
        except (aiohttp.ClientError, OSError) as error:
            raise self.failure(error, has_begun=False) from error

    def failure(self, error: Exception, *, has_begun: bool) -> UpstreamError:
        """What it means for a client that the connection failed."""
        if isinstance(error, aiohttp.SocketTimeoutError):
            return self.silence()
        if has_begun:
            return UpstreamError(DIED, 502)
        reason = str(error) or type(error).__name__
        return UpstreamError(f"Nothing answers at {self.endpoint.shown} ({reason}). {_NO_ANSWER}.", 502)

    def silence(self) -> UpstreamError:
        advice = "Give it more time (--patience), or send a shorter prompt."
        said = f"the model server at {self.endpoint.shown} said nothing for {self.patience_s:g} s"
        return UpstreamError(f"{said}. {advice}", 504)

    async def body_of(self, response: aiohttp.ClientResponse) -> bytes:
        """All of it, or what came before it was too much to be an answer; our key, which it may repeat, made
        unreadable. Raises UpstreamError when the connection breaks in the middle."""
        pieces, size = [], 0
        try:
            while size < MAX_ANSWER_BYTES and (piece := await response.content.readany()):
                pieces.append(piece)
                size += len(piece)
        except aiohttp.ClientError as error:
            raise self.failure(error, has_begun=True) from error
        return self.without_key(b"".join(pieces))

    async def options_for(self, body: Json) -> Options:
        """How to translate this request: what the user chose, and what is known of the model."""
        known = await self.known()
        options = known.options
        model = body.get("model") if isinstance(body, dict) else None
        if options.may_be_own and known.kind is not None:
            found, small = await asyncio.to_thread(self._found, str(model or ""))
            told = self._wished(found.recognised)
            recognised = (told.certain if told is not None else None) or options.recognised
            options = replace(
                options,
                own=found.own,
                template=options.template or found.template,
                recognised=recognised,
                small=small,
            )
        if model in self._toolless:
            options = replace(options.for_model(str(model)), native=False, setup_of=None)
        if options.generation_prompt is None and options.template is not None and known.kind == "llama.cpp":
            prompt = await self._generation_prompt(body)
            # Raw text, to be read by us: else llama.cpp splits off reasoning by rules of its own, or not.
            options = replace(options, generation_prompt=prompt, fields={"reasoning_format": "none"})
        return options

    def _found(self, model: str) -> tuple[Found, Parts | None]:
        """How ``model`` gets its own prompt, and the help to choose where it gets none; said when it is new."""
        found = self._own.of(model)
        of_model = f" of {model}" if model and self._own.endpoint.kind == "ollama" else ""
        self._tell_once(f"prompt{of_model}: {found.told}")
        self._tell_format(self._wished(found.recognised), of_model)
        return found, self._guided(self._own.endpoint, model, found)

    def _wished(self, told: Recognised | None) -> Recognised | None:
        return told.from_template() if told is not None and self._options.from_template else told

    def _tell_format(self, told: Recognised | None, of_model: str = "") -> None:
        """What was derived, for nobody chose it; a table's name says nothing new."""
        if told is not None and (told.by == "template" or self._options.from_template):
            self._tell_once(f"format{of_model}: {told}")

    def _guided(self, endpoint: Endpoint, model: str, found: Found) -> Parts | None:
        if found.own is not None or self._options.constraint is not None:
            return None
        guides = self._guides = self._guides or Guides(endpoint, self._options.guide)
        small = guides.of(model)
        if small is not None:
            self._tell_once(guides.told(model if endpoint.kind == "ollama" else ""))
        return small

    def tell_prompt(self) -> None:
        """Say at the start who will describe the tools, as far as nothing has to be loaded to know that."""
        if not self._options.may_be_own:
            self._tell_once("prompt: in words, as asked for")
            return
        kind = recognise(self.endpoint.base_url)
        if kind is not None and (kind != "ollama" or self._template is not None):
            endpoint = Endpoint(self.endpoint.base_url, kind)
            found = OwnPrompts(endpoint, self._template).of(first_model(endpoint))
            self._tell_once(f"prompt: {found.told}")
            self._guided(endpoint, "", found)

    def _tell_once(self, note: str) -> None:
        if note not in self._said:
            if len(self._said) >= MAX_TOOLLESS:
                self._said.clear()
            self._said.add(note)
            print(note, file=sys.stderr, flush=True)

    def cannot_prompt(self, fault: PromptFault, body: JsonObject) -> None:
        """Say that a request goes in words, because its own prompt could not be had."""
        self._tell_once(f"a prompt of the model's own ({way_of(body)}) was refused, so it went in words: {fault}")

    def refuses_tools(self, status: int, said: bytes, model: Json) -> bool:
        """Whether the server has no tool calling of its own for ``model``: then its tools go as text from now on."""
        if not refuses_tools(status, said.decode("utf-8", "replace")):
            return False
        if model not in self._toolless:
            if len(self._toolless) >= MAX_TOOLLESS:
                self._toolless.clear()
            self._toolless.add(model)
            print(f"the model server takes no tools for {model}: they are described in the prompt", file=sys.stderr)
        return True

    async def _generation_prompt(self, body: Json) -> str | None:
        """The end of llama.cpp's prompt; None where it does not say. Asked once for each way of thinking."""
        given = {key: body[key] for key in _SHAPES_PROMPT if key in body} if isinstance(body, dict) else {}
        content = as_json({"messages": [{"role": "user", "content": _QUESTION}], **given})
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

    async def _request(
        self, method: str, path: str, content: bytes, headers: Mapping[str, str], is_watched: bool
    ) -> aiohttp.ClientResponse:
        assert self._session is not None
        return await self._session.request(
            method,
            yarl.URL(self.url(path), encoded=True),
            data=content or None,
            headers={**headers, **self._own_headers},
            allow_redirects=False,
            # Of aiohttp's timers the one for silence would start anew with every chunk of a stream.
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=5.0, sock_read=None if is_watched else self.patience_s
            ),
        )

    async def known(self) -> Known:
        """What the server is and how its model writes calls. Asks it, but not each time."""
        async with self._asking:
            now = asyncio.get_running_loop().time()
            if self._known is None or now > self._known_until:
                self._known = await asyncio.to_thread(self._ask_about, self._known)
                self._prompts.clear()
                self._known_until = now + self._holds_for_s(self._known)
            return self._known

    def _ask_about(self, before: Known | None) -> Known:
        kind = (before.kind if before else None) or recognise(self.endpoint.base_url)
        options = self._options
        if kind is not None:
            options = replace(options, enforce=partial(constraint_fields, kind))
        options = replace(options, waits_for_calls=kind == "llama.cpp")
        if kind == "llama.cpp":
            answer = get(f"{self.endpoint.root}/props", timeout_s=2.0)
            if before is not None and (answer is None or answer.status != 200):
                return before  # too busy to say
            options = _with_props(options, answer)
            if options.template is not None and options.format is None:
                told = self._wished(recognise_format(options.template, options.model))
                options = replace(options, recognised=told.certain if told is not None else None)
                self._tell_format(told)
            if before is not None and before.options.template != options.template:
                self._own.forget()
                self._guides = None
        if kind is not None:
            endpoint = self._own.endpoint = Endpoint(self.endpoint.base_url, kind)
            setup_of, notes = setups(self._profile, endpoint)
            options = replace(options, setup_of=setup_of)
            advice = context_of(endpoint).advice
            self._tell([*notes, advice] if advice else notes)
        return Known(kind, options)

    def _tell(self, notes: list[str]) -> None:
        """What is new among ``notes``, on stderr."""
        for note in notes:
            if note not in self._told:
                print(note, file=sys.stderr, flush=True)
        self._told = notes

    def _holds_for_s(self, known: Known) -> float:
        """Somebody may restart llama.cpp with another model; what is not up yet is asked again at once."""
        if known.kind == "llama.cpp":
            return KNOWN_FOR_S if known.options.template else 0.0
        if known.kind == "ollama":
            return KNOWN_FOR_S  # which model it has loaded, and with what context, changes
        return math.inf if known.kind else 0.0


def _with_props(options: Options, answer: Answer | None) -> Options:
    """llama.cpp has one model, whatever requests call it: its template and file name tell."""
    props = answer.body if answer is not None and isinstance(answer.body, dict) else {}
    template, path = props.get("chat_template"), props.get("model_path")
    return replace(
        options,
        template=template if isinstance(template, str) else None,
        model=os.path.basename(path) if isinstance(path, str) else None,  # noqa: PTH119  # a path of the server's
    )
