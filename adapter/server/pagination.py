"""Items that were kept, page by page, as OpenAI's interface lists them."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse

from adapter.core.events import JsonObject
from adapter.protocols.openai_errors import RequestError, refusal

MAX_PAGE = 100
"""Items in one page, as at OpenAI."""


def paginate(items: Sequence[JsonObject], http: HttpRequest) -> JSONResponse:
    """The page that the query asks for: ``order`` (the newest first by itself), ``limit``, and ``after`` which item."""
    query = http.query_params
    order, limit, after = query.get("order", "desc"), query.get("limit", "20"), query.get("after")
    if order not in ("asc", "desc") or not limit.isascii() or not limit.isdigit() or not 1 <= int(limit) <= MAX_PAGE:
        error = RequestError(f"order must be asc or desc, and limit from 1 to {MAX_PAGE}", "limit")
        return JSONResponse(refusal(error), error.status)
    listed = list(items) if order == "asc" else list(reversed(items))
    if after is not None:
        listed = listed[next((place + 1 for place, item in enumerate(listed) if item["id"] == after), len(listed)) :]
    page, has_more = listed[: int(limit)], len(listed) > int(limit)
    return JSONResponse(list_object(page, has_more=has_more))


def list_object(items: Sequence[JsonObject], *, has_more: bool = False) -> JsonObject:
    first, last = (items[0]["id"], items[-1]["id"]) if items else ("", "")
    return {"object": "list", "data": list(items), "first_id": first, "last_id": last, "has_more": has_more}
