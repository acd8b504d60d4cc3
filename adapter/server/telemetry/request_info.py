"""One request as it is seen from outside, from its first byte to its last; whoever serves it finds it here."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

from adapter.core.events import Json, JsonObject
from adapter.protocols.request_stats import MAX_NAME, RequestStats
from adapter.protocols.translated_request import TranslatedRequest

OPERATIONS = {
    "/v1/chat/completions": "chat",
    "/chat/completions": "chat",
    "/v1/messages": "chat",
    "/v1/responses": "chat",
    "/responses": "chat",
    "/api/chat": "chat",
    "/v1/completions": "text_completion",
    "/completions": "text_completion",
    "/completion": "text_completion",
    "/infill": "text_completion",
    "/api/generate": "text_completion",
    "/v1/embeddings": "embeddings",
    "/embeddings": "embeddings",
    "/api/embed": "embeddings",
    "/api/embeddings": "embeddings",
}
"""What the paths make the model do, in the words of OpenTelemetry's ``gen_ai.operation.name``."""


@dataclass(slots=True)
class RequestInfo:
    """``id``: by which client, log and model server call it. ``route``: the server's own pattern, one of few, or
    "none" where a request came to none. ``status``: 0 until the answer begins. Times are in seconds from there.

    ``model``: as the client calls it. ``error``: a type, also of an answer that began well. ``is_whole``: the answer
    went out to its end. ``handed_on``: headers for the model server. ``is_observed``: somebody counts.
    """

    id: str = ""
    began: float = field(default_factory=time.monotonic)
    method: str = ""
    path: str = ""
    route: str = "none"
    status: int = 0
    first_s: float | None = None
    seconds: float = 0.0
    model: str = ""
    is_stream: bool = False
    format: str = ""
    sent: JsonObject = field(default_factory=dict)
    account: RequestStats = field(default_factory=RequestStats)
    left_out: list[str] = field(default_factory=list)
    retries: int = 0
    error: str = ""
    is_whole: bool = False
    handed_on: dict[str, str] = field(default_factory=dict)
    is_observed: bool = False

    @property
    def operation(self) -> str:
        """What the model is made to do; empty where that is nothing."""
        return OPERATIONS.get(self.path, "") if self.method == "POST" else ""

    def answers(self) -> None:
        """A piece of the answer goes out; what only says that somebody is at work is none."""
        if self.first_s is None:
            self.first_s = time.monotonic() - self.began

    def asks_for(self, body: JsonObject) -> None:
        """The request is ``body``, as its client wrote it."""
        self.model = str(body.get("model") or "")[:MAX_NAME]

    def reads(self, request: TranslatedRequest) -> None:
        """The answer to ``request`` is read here."""
        self.sent, self.format, self.account = request.body, request.parsing.format, request.account

    def failed(self, error: Json) -> None:
        """The client was told of ``error``, an object in OpenAI's shape."""
        said = error.get("error") if isinstance(error, dict) else None
        self.error = str((said.get("type") if isinstance(said, dict) else None) or "upstream_error")[:MAX_NAME]


class RequestObserver(Protocol):
    def begun(self, seen: RequestInfo, headers: Mapping[str, str], /) -> None:
        """A request has come, with ``headers``; nothing else of it is known yet."""
        ...

    def ended(self, seen: RequestInfo) -> None:
        """All is known of it."""
        ...


_NOW: ContextVar[RequestInfo | None] = ContextVar("seen", default=None)


def current_request() -> RequestInfo:
    """The request that is being served; one that nobody looks at where there is none."""
    return _NOW.get() or RequestInfo()


def set_current_request(seen: RequestInfo) -> None:
    """From here on `seen_now` is ``seen``, in all tasks that begin here."""
    _NOW.set(seen)
