"""Paginate lists of stored items, as in OpenAI's API."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request as HttpRequest

from adapter.core.events import JsonObject
from adapter.protocols.openai_errors import RequestError

MAX_PAGE = 100
"""Maximum number of items per page, as in OpenAI's API."""


def paginate(items: Sequence[JsonObject] | None, http: HttpRequest) -> JsonObject | None:
    """Return a page of ``items``, or None if there is no list.

    These query parameters select it: ``order`` (``asc``, or ``desc`` for the newest first, the default), ``limit``
    (number of items), and ``after`` (id of the last item of the previous page).
    """
    if items is None:
        return None
    query = http.query_params
    order, limit, after = query.get("order", "desc"), query.get("limit", "20"), query.get("after")
    if order not in ("asc", "desc") or not limit.isascii() or not limit.isdigit() or not 1 <= int(limit) <= MAX_PAGE:
        raise RequestError(
            f"order must be asc or desc, and limit between 1 and {MAX_PAGE}; got {order[:20]!r} and {limit[:20]!r}",
            "limit",
        )
    ordered = list(items) if order == "asc" else list(reversed(items))
    if after is not None:
        ordered = ordered[
            next((index + 1 for index, item in enumerate(ordered) if item["id"] == after), len(ordered)) :
        ]
    page, has_more = ordered[: int(limit)], len(ordered) > int(limit)
    return list_object(page, has_more=has_more)


def list_object(items: Sequence[JsonObject], *, has_more: bool = False) -> JsonObject:
    first, last = (items[0]["id"], items[-1]["id"]) if items else ("", "")
    return {"object": "list", "data": list(items), "first_id": first, "last_id": last, "has_more": has_more}
