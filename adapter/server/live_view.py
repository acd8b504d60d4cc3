"""The page of `adapter serve --view`: what clients ask and what the model answers, while it happens.

Whoever shows the key gets a cookie that stands for it, which no script can read and no other site's page sends: by the
form, or by an address with ``?key=``, which leads on to one without. Programs may send the key as clients do.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Callable, Mapping
from functools import partial
from urllib.parse import parse_qs

from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from adapter.core.errors import UsageError
from adapter.core.events import JsonObject
from adapter.protocols.openai_errors import RequestError, refusal
from adapter.protocols.sse import PING, encode_json
from adapter.recording.html import render_page
from adapter.recording.view.live_feed import LiveExchanges
from adapter.recording.view.page import live_page
from adapter.recording.view.page_data import ReparseOptions
from adapter.server.access_control import key_of
from adapter.server.request_body import read_content
from adapter.server.streaming_responses import cancel_on_disconnect, send_start

MAX_VIEWERS = 16
"""Pages that look on at a time."""
MAX_FORM_BYTES = 4_096
"""Of the form with the key."""
TICK_S = 0.25
"""Between two looks at what has changed."""
PING_S = 10.0
"""Of silence, after which a page hears that the server is there."""

_SAFE = {
    "cache-control": "no-store", "content-security-policy": "frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin", "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}  # fmt: skip
_FORM = _SAFE | {"referrer-policy": "same-origin"}
"""With no-referrer a browser sends a form from nowhere (``Origin: null``)."""


class LiveView:
    """``live``: what it shows. ``name``: of the page. ``key``: what one has to know. ``is_stopping``: the server is to
    end, which no page holds up."""

    path = "/view"

    def __init__(self, live: LiveExchanges, name: str, key: str, is_stopping: Callable[[], bool]) -> None:
        self.live, self._key, self._is_stopping = live, key.encode(), is_stopping
        self._html = live_page(name)
        self._cookie = secrets.token_urlsafe(32).encode()
        self._viewers = 0
        self._looking = asyncio.Lock()

    def routes(self) -> list[Route]:
        return [
            Route(self.path, self._lead_on),
            Route(f"{self.path}/{{path:path}}", self._answer, methods=["GET", "POST"]),
        ]

    async def _lead_on(self, _: HttpRequest) -> Response:
        return RedirectResponse(f"{self.path[1:]}/", 308, _SAFE)

    async def _answer(self, http: HttpRequest) -> ASGIApp:
        path = http.path_params["path"]
        try:
            if not path:
                return await self._enter(http)
            if not self._may_look(http):
                raise RequestError("the key is wrong or missing: open /view/ in a browser, or send it", status=401)
            match http.method, path.split("/"):
                case "GET", ["rows"]:
                    return _json(await asyncio.to_thread(self.live.changes, self._since(http)))
                case "GET", ["found"]:
                    words = http.query_params.get("words", "")
                    return _json({"numbers": await asyncio.to_thread(self.live.holding, words)})
                case "GET", ["events"]:
                    return await self._events(http)
                case "GET", ["exchanges", number] if number.isdecimal() and len(number) < 16:
                    return await self._exchange(int(number), http.query_params)
                case _:
                    raise RequestError(f"there is no {path[:80]!r} here", status=404)
        except RequestError as error:
            return _json(refusal(error), error.status)

    # ------------------------------------------------------------ the key

    async def _enter(self, http: HttpRequest) -> Response:
        """The page, or the way to it."""
        if http.method == "POST":
            return self._let_in(http, await _key_in(http))
        if "key" in http.query_params:
            return self._let_in(http, http.query_params["key"])
        if self._may_look(http):
            return HTMLResponse(self._html, headers=_SAFE)
        form = render_page("key.html", is_wrong="wrong" in http.query_params)
        return HTMLResponse(form, 401, _FORM)

    def _let_in(self, http: HttpRequest, key: str) -> Response:
        if not hmac.compare_digest(key.encode("utf-8", "replace"), self._key):
            return RedirectResponse("./?wrong", 303, _SAFE)
        answer = RedirectResponse("./", 303, _SAFE)
        answer.set_cookie(_cookie_of(http), self._cookie.decode(), path=self.path, httponly=True, samesite="strict")
        return answer

    def _may_look(self, http: HttpRequest) -> bool:
        shown = http.cookies.get(_cookie_of(http), "").encode("utf-8", "replace")
        by_program = key_of(http.headers).encode("utf-8", "replace")
        return hmac.compare_digest(shown, self._cookie) or hmac.compare_digest(by_program, self._key)

    # ------------------------------------------------------------ what there is to see

    async def _exchange(self, number: int, query: Mapping[str, str]) -> Response:
        try:
            again = ReparseOptions.named(query.get("format"), query.get("policy"))
        except UsageError as error:
            raise RequestError(str(error)) from error
        async with self._looking:  # of what may take long one at a time
            detail = partial(self.live.detail, number, again, answer_only="answer" in query)
            found = await asyncio.to_thread(detail)
        if found is None:
            raise RequestError(f"exchange {number} is kept no more, or has not been", status=404)
        return _json(found)

    async def _events(self, http: HttpRequest) -> ASGIApp:
        if self._viewers >= MAX_VIEWERS:
            raise RequestError(f"{MAX_VIEWERS} pages look on already: close one", status=503)
        since = self._since(http)

        async def app(_scope: Scope, receive: Receive, send: Send) -> None:
            self._viewers += 1
            try:
                await cancel_on_disconnect(receive, self._tell_until_stop(send, since))
            finally:
                self._viewers -= 1

        return app

    async def _tell_until_stop(self, send: Send, since: int) -> None:
        telling = asyncio.create_task(self._tell(send, since))
        try:
            while not telling.done() and not self._is_stopping():
                await asyncio.wait({telling}, timeout=TICK_S)
            await asyncio.wait_for(telling, 4 * TICK_S)
        except TimeoutError:
            pass  # who does not read is not waited for
        finally:
            telling.cancel()

    async def _tell(self, send: Send, version: int) -> None:
        """What changes, as events, until the server stops. One who reads slowly misses what was in between."""
        await send_start(send, 200, _SAFE | {"content-type": "text/event-stream", "x-accel-buffering": "no"})
        await send({"type": "http.response.body", "body": PING, "more_body": True})
        silent_s = 0.0
        while not self._is_stopping():
            if version != self.live.version:
                changes = await asyncio.to_thread(self.live.changes, version)
                version = changes["version"]
                event = f"id: {self.live.epoch}.{version}\ndata: ".encode() + encode_json(changes) + b"\n\n"
                await send({"type": "http.response.body", "body": event, "more_body": True})
                silent_s = 0.0
                if version != self.live.version and changes["is_part"]:
                    continue
            elif silent_s >= PING_S:
                await send({"type": "http.response.body", "body": PING, "more_body": True})
                silent_s = 0.0
            await asyncio.sleep(TICK_S)
            silent_s += TICK_S
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _since(self, http: HttpRequest) -> int:
        """The version that a page has seen; 0 where it is one of another server."""
        epoch, _, version = (http.headers.get("last-event-id") or http.query_params.get("since", "")).partition(".")
        is_ours = epoch == self.live.epoch and version.isdecimal() and len(version) < 16
        return int(version) if is_ours else 0


def _cookie_of(http: HttpRequest) -> str:
    """Its name: browsers do not tell the ports of one machine apart."""
    return f"adapter_view_{(http.scope.get('server') or ('', 0))[1]}"


async def _key_in(http: HttpRequest) -> str:
    """The key of a form that was sent; empty where there is none. Raises RequestError for one that is too large."""
    announced = http.headers.get("content-length", "")
    if not announced or len(announced) > 12 or int(announced) > MAX_FORM_BYTES:  # llhttp has seen that it is digits
        raise RequestError(f"the form has more than {MAX_FORM_BYTES:,} bytes", status=413)
    try:
        fields = parse_qs((await read_content(http)).decode("utf-8", "replace"), max_num_fields=8)
    except ValueError:
        return ""
    return fields.get("key", [""])[0]


def _json(value: JsonObject, status: int = 200) -> Response:
    return Response(encode_json(value), status, _SAFE, "application/json")
