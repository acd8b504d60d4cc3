"""Send HTTP requests to the model server, and build the errors for clients if the requests fail."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Mapping

import aiohttp
import yarl

from adapter.backends.endpoint_discovery import START_SERVER, Endpoint, find_api_key
from adapter.backends.template_files import TemplateWorker, run_render_step
from adapter.core.errors import TransportError
from adapter.core.events import Json, JsonObject
from adapter.core.text.redaction import REDACTED
from adapter.protocols.openai_chat_response import DIED
from adapter.protocols.openai_errors import get_error_text, relay_error
from adapter.protocols.sse import encode_json, read_json_or_none
from adapter.protocols.template_prompt import HttpPost, RenderTemplate, iter_prompt_steps
from adapter.server.telemetry.logs import log_message
from adapter.server.telemetry.request_info import get_current_request

SILENCE_S = 600.0
"""Default maximum time without data from the model server, in seconds. Long prompts can take minutes."""

CONNECT_S = 30.0
"""Maximum time to connect to the model server, in seconds. Bursts of connections need more than five."""

RETRY_S = 15.0
"""Maximum time, in seconds, to retry while a server reports that it is loading or busy. Clients also retry."""

REFUSED_S = 3.0
"""Maximum time, in seconds, to retry while the connection is refused, usually because no server is running."""

MAX_PAUSE_S = 3.0
"""Maximum pause between retries, in seconds, unless the server requests a longer one."""

MAX_ANSWER_BYTES = 32 * 1024 * 1024
"""Maximum size of a buffered answer, in bytes."""

_JSON = {"Content-Type": "application/json", "Accept-Encoding": "identity"}


def _describe_status_problem(status: int, *, is_work: bool) -> str:
    """Return the reason why a response with this status is not forwarded, or "". ``is_work`` is True if the request
    uses the model."""
    if status < 200:
        return "changed the protocol of the connection, which was not requested"
    if status > 599:
        return f"sent the status {status}, which HTTP does not define"
    if is_work and 300 <= status < 400:
        return f"redirected the request (status {status}), and redirects are not followed: check the address"
    return ""


class UpstreamError(TransportError):
    """The connection to the model server failed. ``status`` is the HTTP status for the client: 502 or 504."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class KeyRedactor:
    """Redacts the API key ``key`` in streamed text. The end of a chunk is buffered if the key may begin there."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._buffered = b""

    def feed(self, piece: bytes) -> bytes:
        if not self._key:
            return piece
        text = (self._buffered + piece).replace(self._key, f"{REDACTED}]".encode())
        ends = range(min(len(self._key) - 1, len(text)), 0, -1)
        size_held = next((size for size in ends if text.endswith(self._key[:size])), 0)
        self._buffered = text[len(text) - size_held :]
        return text[: len(text) - size_held]

    def close(self) -> bytes:
        return self._buffered


class UpstreamConnection:
    """A connection to the OpenAI-compatible API of the model server at ``base_url``.

    The server gets the key in ``OPENAI_API_KEY``, unless it runs on this machine. A client's key is never passed on.
    ``patience_s`` is the maximum time without data, in seconds, and ``template`` is the user's chat template. For
    ``retry_s``, see `retry_until_ready`.
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
        self._decoding_session: aiohttp.ClientSession | None = None
        key = self._key = find_api_key(self.endpoint)
        self._own_headers = {"Authorization": f"Bearer {key}"} if key else {}

    async def open(self) -> None:
        connector = aiohttp.TCPConnector(limit=0)
        self._session, self._decoding_session = (
            aiohttp.ClientSession(
                connector=connector,
                auto_decompress=decodes,
                trust_env=not self.endpoint.is_local,  # HTTP_PROXY is not meant for this machine
                cookie_jar=aiohttp.DummyCookieJar(),
            )
            for decodes in (False, True)
        )

    async def close(self) -> None:
        for session in (self._session, self._decoding_session):
            if session is not None:
                await session.close()
        if self._template is not None:
            self._template.close()

    @property
    def has_key(self) -> bool:
        return self._key is not None

    def remove_key(self, content: bytes) -> bytes:
        """Redact the API key in ``content``, because a server may repeat it in its answer."""
        remover = self.create_key_redactor()
        return remover.feed(content) + remover.close()

    def create_key_redactor(self) -> KeyRedactor:
        """Return a redactor for the API key in a streamed answer."""
        return KeyRedactor((self._key or "").encode())

    async def ask(self, path: str, body: JsonObject, *, has_own_timeout: bool = False) -> aiohttp.ClientResponse:
        """Send a request, and return the response once its headers have arrived. For ``has_own_timeout``, see `send`.

        Raises TemplatePromptError if the chat template cannot build the prompt.
        """
        last = await self.prepare(path, body)
        content = encode_json(last.body)
        return await self.send("POST", last.path, content, _JSON, has_own_timeout=has_own_timeout, retries=True)

    async def prepare(self, path: str, body: JsonObject) -> HttpPost:
        """Send the requests that build the prompt, and return the final, unsent request. Raises TemplatePromptError."""
        steps = iter_prompt_steps(path, body)
        try:
            step = next(steps)
            while True:
                if isinstance(step, RenderTemplate):
                    step = steps.send(await asyncio.to_thread(run_render_step, step, self._template))
                else:
                    step = steps.send(await self.post_json(step))
        except StopIteration as stop:
            last: HttpPost = stop.value
        return last

    async def post_json(self, post: HttpPost) -> Json:
        """Send a request, and return the JSON in the answer, or None if the answer is not JSON."""
        response = await self.send("POST", post.path, encode_json(post.body), _JSON)
        try:
            return read_json_or_none(await self.read_body(response))
        finally:
            response.close()

    async def request_json(self, method: str, path: str, content: bytes = b"") -> JsonObject:
        """Send a request, and return the JSON object in the answer. Raises UpstreamError if the answer is something
        else."""
        response = await self.send(method, path, content, _JSON)
        try:
            status, body = response.status, await self.read_body(response)
        finally:
            response.close()
        value = read_json_or_none(body)
        if status != 200 or not isinstance(value, dict):
            status = status if status >= 400 else 502
            raise UpstreamError(get_error_text(relay_error(status, body)), status)
        return value

    async def send(
        self,
        method: str,
        path: str,
        content: bytes,
        headers: Mapping[str, str],
        *,
        has_own_timeout: bool = False,
        retries: bool = False,
    ) -> aiohttp.ClientResponse:
        """Send a request. Raises UpstreamError if the server cannot be reached.

        ``has_own_timeout`` is True if the caller limits the time without data. ``retries`` is True if the request uses
        the model; then it is retried while the server is starting, loading or busy, and redirects are errors.
        """

        async def send_once() -> aiohttp.ClientResponse:
            try:
                return await self._send_request(method, path, content, headers, has_own_timeout)
            except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
                if isinstance(error, aiohttp.ClientConnectorError):
                    raise
                # The server may just have closed an idle connection, or one with a hundred requests (llama.cpp).
                return await self._send_request(method, path, content, headers, has_own_timeout)

        try:
            shown = self.endpoint.display_url
            response = await (retry_until_ready(send_once, self._retry_s, shown) if retries else send_once())
            if problem := _describe_status_problem(response.status, is_work=retries):
                response.close()
                raise UpstreamError(f"the model server at {self.endpoint.display_url} {problem}", 502)
            return response
        except (aiohttp.ClientError, OSError) as error:
            raise self.build_connection_error(error, has_begun=False) from error

    def build_connection_error(self, error: Exception, *, has_begun: bool) -> UpstreamError:
        """Return the client's error for a failed connection. ``has_begun`` is True if the answer had already begun."""
        if isinstance(error, aiohttp.SocketTimeoutError):
            return self.build_silence_error()
        if has_begun:
            return UpstreamError(DIED, 502)
        reason = str(error) or type(error).__name__
        if not isinstance(error, aiohttp.ClientConnectorError | aiohttp.ServerTimeoutError):
            message = (
                f"the model server at {self.endpoint.display_url} accepted the request but sent no answer ({reason})"
            )
            return UpstreamError(f"{message}. Retry, or check the server's log.", 502)
        return UpstreamError(f"no server answers at {self.endpoint.display_url} ({reason}). {START_SERVER}.", 502)

    def build_silence_error(self) -> UpstreamError:
        advice = "Increase --patience, or send a shorter prompt."
        message = f"the model server at {self.endpoint.display_url} sent nothing for {self.patience_s:g} s"
        return UpstreamError(f"{message}. {advice}", 504)

    async def read_body(self, response: aiohttp.ClientResponse) -> bytes:
        """Return the start of the body, at most `MAX_ANSWER_BYTES`, with a redacted key. Raises UpstreamError."""
        pieces, size = [], 0
        try:
            while size < MAX_ANSWER_BYTES and (piece := await response.content.readany()):
                pieces.append(piece)
                size += len(piece)
        except aiohttp.ClientError as error:
            raise self.build_connection_error(error, has_begun=True) from error
        return self.remove_key(b"".join(pieces))

    async def _send_request(
        self, method: str, path: str, content: bytes, headers: Mapping[str, str], has_own_timeout: bool
    ) -> aiohttp.ClientResponse:
        # Answers that are passed through keep their encoding. Some servers compress other answers uninvited.
        session = self._decoding_session if "Accept-Encoding" in headers else self._session
        assert session is not None
        return await session.request(
            method,
            yarl.URL(self.endpoint.build_url(path), encoded=True),
            data=content or None,
            headers={**headers, **get_current_request().upstream_headers, **self._own_headers},
            allow_redirects=False,
            # aiohttp's timer for silence would restart with every chunk of a stream
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=CONNECT_S, sock_read=None if has_own_timeout else self.patience_s
            ),
        )


async def retry_until_ready(
    ask: Callable[[], Awaitable[aiohttp.ClientResponse]], retry_s: float = RETRY_S, shown: str = "the model server"
) -> aiohttp.ClientResponse:
    """Call ``ask`` until it returns a response that need not be retried.

    The request is retried if the connection is refused, on status 503, and on status 429 with a ``Retry-After`` header.
    After ``retry_s`` seconds, the last response is returned, or the last error is raised. The second wait is logged;
    ``shown`` is the server's name in the log.
    """
    now = asyncio.get_running_loop().time
    began, max_pause_s, waits = now(), 0.25, 0
    while True:
        pause_s, limit_s = random.uniform(0, max_pause_s), retry_s
        try:
            response = await ask()
        except aiohttp.ClientConnectorError:
            reason, limit_s = "refuses connections", min(retry_s, REFUSED_S)
            if now() - began + pause_s > limit_s:
                raise
        else:
            reason = f"answers {response.status}"
            header = response.headers.get("Retry-After", "")
            if re.fullmatch(r"\d{1,6}(?:\.\d+)?", header):  # a date is ignored: no model server sends one
                pause_s = float(header)
            is_busy = response.status == 503 or (response.status == 429 and header)
            if not is_busy or now() - began + pause_s > retry_s:
                return response
            response.close()
        get_current_request().retries += 1
        waits += 1
        if waits == 2:
            log_message(f"{shown} {reason}; a request is retried for up to {limit_s:g} s")
        await asyncio.sleep(pause_s)
        max_pause_s = min(2 * max_pause_s, MAX_PAUSE_S)
