"""Serve the live view of `adapter serve --view`, a page that shows requests and answers as they arrive.

A browser sends the key in a form, or in the address as ``?key=``. It is then redirected to an address without the key,
and gets a cookie that scripts cannot read and other sites cannot send. Programs can send the key in the headers that
also carry API keys.
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
from adapter.parsing.formats import is_format_file
from adapter.protocols.request_errors import RequestError, build_error_body
from adapter.protocols.sse import PING, encode_json
from adapter.recording.html_pages import render_page
from adapter.recording.view.live_exchanges import LiveExchanges
from adapter.recording.view.view_page import render_linked_live_page, render_live_page
from adapter.recording.view.view_page_data import ReparseOptions
from adapter.server.access_control import find_key
from adapter.server.asgi_messages import cancel_on_disconnect, send_start
from adapter.server.request_body import read_content

MAX_VIEWERS = 16
"""Maximum number of open pages."""
MAX_FORM_BYTES = 4_096
"""Maximum size of the submitted form, in bytes."""
TICK_S = 0.25
"""Seconds between checks for changes."""
PING_S = 10.0
"""Maximum time without changes, in seconds. After that, the page gets a keepalive."""

_SAFE = {
    "cache-control": "no-store", "content-security-policy": "frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin", "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}  # fmt: skip
_FORM = _SAFE | {"referrer-policy": "same-origin"}
"""Headers of the page with the key's form. With no-referrer, browsers would send ``Origin: null``."""


class LiveView:
    """Serves the pages that show the exchanges of ``live``, under the heading ``name``.

    Browsers and programs must send ``key``. ``is_stopping`` returns True during shutdown, which ends event streams.
    """

    path = "/view"

    def __init__(self, live: LiveExchanges, name: str, key: str, is_stopping: Callable[[], bool]) -> None:
        self.live, self._key, self._is_stopping = live, key.encode(), is_stopping
        self._name, self._html = name, render_live_page(name)
        self._cookie = secrets.token_urlsafe(32).encode()
        self._viewers = 0
        self._detail_lock = asyncio.Lock()

    def list_routes(self) -> list[Route]:
        return [
            Route(self.path, self._answer, methods=["GET", "POST"]),
            Route(f"{self.path}/{{path:path}}", self._answer, methods=["GET", "POST"]),
        ]

    async def _answer(self, http: HttpRequest) -> ASGIApp:
        path = http.path_params.get("path", "")
        try:
            if not path:
                return await self._enter(http)
            if not self._is_authorized(http):
                raise RequestError(
                    "the key is wrong or missing: open /view/ in a browser, or send the key in a header", status=401
                )
            match http.method, path.split("/"):
                case "GET", ["rows"]:
                    return _build_json_response(
                        await asyncio.to_thread(self.live.list_changes, self._get_version(http))
                    )
                case "GET", ["found"]:
                    words = http.query_params.get("words", "")
                    return _build_json_response({"numbers": await asyncio.to_thread(self.live.search, words)})
                case "GET", ["plain"]:
                    words = http.query_params.get("words", "")
                    rows = await asyncio.to_thread(self.live.list_rows, words)
                    return _build_html_response(
                        await asyncio.to_thread(render_linked_live_page, self._name, rows, words)
                    )
                case "GET", ["plain", number] if number.isdecimal() and len(number) < 16:
                    exchange = await self._find_exchange(int(number), {})
                    return _build_html_response(
                        await asyncio.to_thread(render_linked_live_page, self._name, exchange=exchange)
                    )
                case "GET", ["events"]:
                    return await self._stream_events(http)
                case "GET", ["exchanges", number] if number.isdecimal() and len(number) < 16:
                    return _build_json_response(await self._find_exchange(int(number), http.query_params))
                case _:
                    raise RequestError(f"{path[:80]!r} not found; the live view is at /view/", status=404)
        except RequestError as error:
            return _build_json_response(build_error_body(error), error.status)

    # ------------------------------------------------------------ the key

    async def _enter(self, http: HttpRequest) -> Response:
        """Return the page if the request is authorized, otherwise the form for the key. A path without a slash at its
        end is redirected, because the page's links are relative."""
        if not http.scope["raw_path"].endswith(b"/"):
            return RedirectResponse(f"{self.path[1:]}/", 308, _SAFE)
        if http.method == "POST":
            return self._log_in(http, await _read_form_key(http))
        if "key" in http.query_params:
            return self._log_in(http, http.query_params["key"])
        if self._is_authorized(http):
            return _build_html_response(self._html)
        form = render_page("key.html", is_wrong="wrong" in http.query_params)
        return HTMLResponse(form, 401, _FORM)

    def _log_in(self, http: HttpRequest, key: str) -> Response:
        if not hmac.compare_digest(key.encode("utf-8", "replace"), self._key):
            return RedirectResponse("./?wrong", 303, _SAFE)
        answer = RedirectResponse("./", 303, _SAFE)
        answer.set_cookie(
            _build_cookie_name(http), self._cookie.decode(), path=self.path, httponly=True, samesite="strict"
        )
        return answer

    def _is_authorized(self, http: HttpRequest) -> bool:
        cookie = http.cookies.get(_build_cookie_name(http), "").encode("utf-8", "replace")
        key = find_key(http.headers).encode("utf-8", "replace")
        return hmac.compare_digest(cookie, self._cookie) or hmac.compare_digest(key, self._key)

    # ------------------------------------------------------------ its data

    async def _find_exchange(self, number: int, query: Mapping[str, str]) -> JsonObject:
        if is_format_file(query.get("format")):
            raise RequestError("expected the name of a format, got a format file, which only the command line can read")
        try:
            reparse = ReparseOptions.from_names(query.get("format"), query.get("policy"))
        except UsageError as error:
            raise RequestError(str(error)) from error
        async with self._detail_lock:  # one at a time, because parsing may take long
            detail = partial(self.live.build_detail, number, reparse, answer_only="answer" in query)
            details = await asyncio.to_thread(detail)
        if details is None:
            raise RequestError(f"exchange {number} not found: it expired or never existed", status=404)
        return details

    async def _stream_events(self, http: HttpRequest) -> ASGIApp:
        if self._viewers >= MAX_VIEWERS:
            raise RequestError(f"the maximum of {MAX_VIEWERS} open pages is reached; close one", status=503)
        since = self._get_version(http)

        async def app(_scope: Scope, receive: Receive, send: Send) -> None:
            self._viewers += 1
            try:
                await cancel_on_disconnect(receive, self._send_until_shutdown(send, since))
            finally:
                self._viewers -= 1

        return app

    async def _send_until_shutdown(self, send: Send, since: int) -> None:
        sender = asyncio.create_task(self._send_changes(send, since))
        try:
            while not sender.done() and not self._is_stopping():
                await asyncio.wait({sender}, timeout=TICK_S)
            await asyncio.wait_for(sender, 4 * TICK_S)
        except TimeoutError:
            pass  # do not wait for a page that reads nothing
        finally:
            sender.cancel()

    async def _send_changes(self, send: Send, version: int) -> None:
        """Send changes as events until shutdown. A page that reads slowly does not get intermediate states."""
        await send_start(send, 200, _SAFE | {"content-type": "text/event-stream", "x-accel-buffering": "no"})
        await send({"type": "http.response.body", "body": PING, "more_body": True})
        silent_s = 0.0
        while not self._is_stopping():
            if version != self.live.version:
                changes = await asyncio.to_thread(self.live.list_changes, version)
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

    def _get_version(self, http: HttpRequest) -> int:
        """Return the version of the data that the page already has, or 0 if it is from an earlier run of the server."""
        epoch, _, version = (http.headers.get("last-event-id") or http.query_params.get("since", "")).partition(".")
        is_ours = epoch == self.live.epoch and version.isdecimal() and len(version) < 16
        return int(version) if is_ours else 0


def _build_cookie_name(http: HttpRequest) -> str:
    """Return the cookie's name. It contains the port, because browsers share cookies between all ports of a host."""
    return f"adapter_view_{(http.scope.get('server') or ('', 0))[1]}"


async def _read_form_key(http: HttpRequest) -> str:
    """Return the key in a submitted form, or "" if the form has none. Raises RequestError if the form is too large."""
    announced = http.headers.get("content-length")  # llhttp has checked that it is digits
    if announced is None:
        raise RequestError("the form has no Content-Length; submit it from the page of the live view", status=411)
    if len(announced) > 12 or int(announced) > MAX_FORM_BYTES:
        raise RequestError(f"the form has more than {MAX_FORM_BYTES:,} bytes", status=413)
    try:
        fields = parse_qs((await read_content(http)).decode("utf-8", "replace"), max_num_fields=8)
    except ValueError:
        return ""
    return fields.get("key", [""])[0]


def _build_json_response(value: JsonObject, status: int = 200) -> Response:
    return Response(encode_json(value), status, _SAFE, "application/json")


def _build_html_response(text: str) -> Response:
    return HTMLResponse(text, headers=_SAFE)
