"""The way to the model server: what goes there, what comes back, and what it means when nothing does."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import aiohttp
import yarl

from adapter.backends.endpoint_discovery import START_ONE, Endpoint, api_key_for
from adapter.backends.template_files import TemplateWorker
from adapter.core.errors import TransportError
from adapter.core.events import Json, JsonObject
from adapter.core.text.redaction import REDACTED
from adapter.prompting.chat_template import ChatTemplateError
from adapter.protocols.openai_chat_response import DIED
from adapter.protocols.sse import encode_json, read_json
from adapter.protocols.template_prompt import HttpPost, RenderTemplate, TemplatePromptError, prompt_steps
from adapter.server.telemetry.request_info import current_request
from adapter.server.upstream_retry import RETRY_S, retry_until_ready

SILENCE_S = 600.0
"""How long a model server may stay silent; reading a long prompt takes a slow machine minutes."""

MAX_ANSWER_BYTES = 32 * 1024 * 1024
"""Of an answer that has to be whole before it is translated."""

_JSON = {"Content-Type": "application/json", "Accept-Encoding": "identity"}


class UpstreamError(TransportError):
    """``status``: what a proxy says then, 502 or 504."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class KeyRedactor:
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


class UpstreamConnection:
    """``base_url``: of its OpenAI-compatible interface. ``patience_s``: how long it may say nothing. ``retry_s``: as of
    `patiently`. ``template``: the user's, for the model's own prompt.

    Its key is ``OPENAI_API_KEY``, unless it is on this machine; that of a client is never handed on.
    """

    def __init__(
        self,
        base_url: str,
        patience_s: float = SILENCE_S,
        template: TemplateWorker | None = None,
        retry_s: float = RETRY_S,
    ) -> None:
        self.endpoint = Endpoint(base_url)
        self.patience_s = patience_s
        self._template = template
        self._retry_s = retry_s
        self._session: aiohttp.ClientSession | None = None
        key = self._key = api_key_for(self.endpoint)
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

    def key_remover(self) -> KeyRedactor:
        """The same for what comes in pieces."""
        return KeyRedactor((self._key or "").encode())

    async def ask(self, path: str, body: JsonObject, *, is_watched: bool = False) -> aiohttp.ClientResponse:
        """Post ``body``; the response's head has come, its content has not. ``is_watched``: as of `send`.

        Raises PromptFault where the model's own prompt cannot be had.
        """
        last = await self.prepared(path, body)
        content = encode_json(last.body)
        return await self.send("POST", last.path, content, _JSON, is_watched=is_watched, is_patient=True)

    async def prepared(self, path: str, body: JsonObject) -> HttpPost:
        """What would be posted at last, after all that has to be asked before. Raises PromptFault as `ask` does."""
        steps = prompt_steps(path, body)
        try:
            step = next(steps)
            while True:
                step = steps.send(await self._performed(step))
        except StopIteration as stop:
            last: HttpPost = stop.value
        return last

    async def asked(self, post: HttpPost) -> Json:
        """The server's answer; None where that is no JSON."""
        response = await self.send("POST", post.path, encode_json(post.body), _JSON)
        try:
            return read_json(await self.body_of(response))
        except ValueError:
            return None
        finally:
            response.close()

    async def _performed(self, step: HttpPost | RenderTemplate) -> Json:
        """What a step on the way to an answer gives; None where that is no JSON."""
        if isinstance(step, RenderTemplate):
            return await asyncio.to_thread(self._rendered, step)
        return await self.asked(step)

    def _rendered(self, step: RenderTemplate) -> str:
        if self._template is None:
            raise TemplatePromptError("no template was named")
        try:
            return self._template.render(step.messages, step.tools, step.variables)
        except ChatTemplateError as fault:
            raise TemplatePromptError(str(fault)) from fault

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
            return await (retry_until_ready(once, self._retry_s) if is_patient else once())
        except (aiohttp.ClientError, OSError) as error:
            raise self.failure(error, has_begun=False) from error

    def failure(self, error: Exception, *, has_begun: bool) -> UpstreamError:
        """What it means for a client that the connection failed."""
        if isinstance(error, aiohttp.SocketTimeoutError):
            return self.silence()
        if has_begun:
            return UpstreamError(DIED, 502)
        reason = str(error) or type(error).__name__
        if not isinstance(error, aiohttp.ClientConnectorError | aiohttp.ServerTimeoutError):
            said = f"The model server at {self.endpoint.display_url} took the request and gave no answer ({reason})"
            return UpstreamError(f"{said}. Ask again, or see its log.", 502)
        return UpstreamError(f"Nothing answers at {self.endpoint.display_url} ({reason}). {START_ONE}.", 502)

    def silence(self) -> UpstreamError:
        advice = "Give it more time (--patience), or send a shorter prompt."
        said = f"the model server at {self.endpoint.display_url} said nothing for {self.patience_s:g} s"
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

    async def _request(
        self, method: str, path: str, content: bytes, headers: Mapping[str, str], is_watched: bool
    ) -> aiohttp.ClientResponse:
        assert self._session is not None
        return await self._session.request(
            method,
            yarl.URL(self.url(path), encoded=True),
            data=content or None,
            headers={**headers, **current_request().handed_on, **self._own_headers},
            allow_redirects=False,
            # Of aiohttp's timers the one for silence would start anew with every chunk of a stream.
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=5.0, sock_read=None if is_watched else self.patience_s
            ),
        )
