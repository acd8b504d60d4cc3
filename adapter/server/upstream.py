"""The model server behind ours: how it is reached, and what is known of its model."""

from __future__ import annotations

import asyncio
import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import aiohttp
import yarl

from adapter.context import context_of
from adapter.endpoints import BUILT_IN, START_ONE, Answer, Endpoint, Kind, get, recognise
from adapter.errors import TransportError
from adapter.events import JsonObject
from adapter.profiles import setups
from adapter.secrets import REDACTED
from adapter.transport import constraint_fields
from adapter.wire.request import Options
from adapter.wire.sse import as_json

SILENCE_S = 600.0
"""How long a model server may stay silent; reading a long prompt takes a slow machine minutes."""

KNOWN_FOR_S = 60.0
"""How long what llama.cpp or Ollama said about its models holds."""

_NO_ANSWER = START_ONE.replace(f"; or {BUILT_IN}", "")


@dataclass(frozen=True, slots=True)
class Known:
    kind: Kind | None
    options: Options


class Upstream:
    """``base_url``: of its OpenAI-compatible interface. ``options``: what the user chose. ``profile``: of `in_force`.

    Its key is ``OPENAI_API_KEY``, unless it is on this machine; that of a client is never handed on.
    """

    def __init__(self, base_url: str, options: Options, profile: str = "none") -> None:
        self.endpoint = Endpoint(base_url)
        self._options = options
        self._profile = profile
        self._told: list[str] = []
        self._known: Known | None = None
        self._known_until = 0.0
        self._asking = asyncio.Lock()
        self._session: aiohttp.ClientSession | None = None
        key = None if self.endpoint.is_local else os.environ.get("OPENAI_API_KEY")
        self._key = key
        self._own_headers = {"Authorization": f"Bearer {key}"} if key else {}

    async def open(self) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=5.0, sock_read=SILENCE_S),
            auto_decompress=False,  # what passes through keeps its encoding
            trust_env=not self.endpoint.is_local,  # HTTP_PROXY is not meant for this machine
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def url(self, path: str) -> str:
        """Where the model server has what our clients call ``path``."""
        return self.endpoint.base_url + path[3:] if path.startswith("/v1/") else self.endpoint.root + path

    def without_key(self, content: bytes) -> bytes:
        """What the server said, for clients: its errors may repeat the key that it was sent."""
        return content.replace(self._key.encode(), f"{REDACTED}]".encode()) if self._key else content

    async def ask(self, path: str, body: JsonObject) -> aiohttp.ClientResponse:
        """Post ``body``; the response's head has come, its content has not."""
        content = as_json(body)
        return await self.send(
            "POST", path, content, {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        )

    async def send(self, method: str, path: str, content: bytes, headers: Mapping[str, str]) -> aiohttp.ClientResponse:
        """Raises TransportError where nothing answers."""
        assert self._session is not None
        try:
            return await self._session.request(
                method,
                yarl.URL(self.url(path), encoded=True),
                data=content or None,
                headers={**headers, **self._own_headers},
                allow_redirects=False,
            )
        except (aiohttp.ClientError, OSError) as error:
            reason = str(error) or type(error).__name__
            raise TransportError(f"Nothing answers at {self.endpoint.shown} ({reason}). {_NO_ANSWER}.") from error

    async def known(self) -> Known:
        """What the server is and how its model writes calls. Asks it, but not each time."""
        async with self._asking:
            now = asyncio.get_running_loop().time()
            if self._known is None or now > self._known_until:
                self._known = await asyncio.to_thread(self._ask_about, self._known)
                self._known_until = now + self._holds_for_s(self._known)
            return self._known

    def _ask_about(self, before: Known | None) -> Known:
        kind = (before.kind if before else None) or recognise(self.endpoint.base_url)
        options = self._options
        if kind is not None:
            # Unbounded strings: a value that ends at a limit would look whole. The token limit ends runaways.
            options = replace(options, enforce=partial(constraint_fields, kind, max_string=None))
        if kind == "llama.cpp":
            answer = get(f"{self.endpoint.root}/props", timeout_s=2.0)
            if before is not None and (answer is None or answer.status != 200):
                return before  # too busy to say
            options = _with_props(options, answer)
        if kind is not None:
            endpoint = Endpoint(self.endpoint.base_url, kind)
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
