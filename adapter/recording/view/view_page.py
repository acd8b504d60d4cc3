"""Render the page of `adapter view`. Its data is in an element that browsers do not execute."""

from __future__ import annotations

from collections.abc import Sequence

from adapter.core.events import JsonObject
from adapter.core.version import __version__
from adapter.parsing.formats import FORMATS
from adapter.parsing.parse_policy import POLICIES
from adapter.recording.html_pages import load_page_asset, render_page
from adapter.recording.view.view_page_data import PageData

ORDERS = (
    ("", "as recorded"), ("newest", "newest first"), ("duration_s", "by duration"),
    ("first_s", "by time to the first chunk"), ("prompt_tokens", "by prompt tokens"),
    ("written_tokens", "by answer tokens"), ("retry", "by retries"),
)  # fmt: skip
"""Sort orders of the list: the statistic to sort by (largest value first), and the label."""

SCRIPTS = ("spans.js", "list.js", "exchange.js", "view.js")


def render_view_page(data: JsonObject) -> str:
    """Render a page that shows ``data``, built by `adapter.recording.view.view_page_data`."""
    return _render(data, "".join(map(load_page_asset, SCRIPTS)))


def render_live_page(name: str) -> str:
    """Render a page with the heading ``name``, which loads its data from its own server."""
    data = PageData(name, "live").data | {"live": True, "formats": sorted(FORMATS), "policies": sorted(POLICIES)}
    return _render(data, "".join(map(load_page_asset, (*SCRIPTS, "live.js"))), connects=True)


def render_linked_live_page(
    name: str, rows: Sequence[JsonObject] = (), words: str = "", exchange: JsonObject | None = None
) -> str:
    """Render a page for browsers without JavaScript: a list of links to exchanges, or one exchange.

    ``rows`` are the exchanges that contain ``words``, from `LiveExchanges.list_rows`. ``exchange`` is the exchange to
    show, from `LiveExchanges.build_detail`.
    """
    conversations: dict[int, list[JsonObject]] = {}
    for row in rows:
        conversations.setdefault(row["conversation"], []).append(row)
    if exchange is not None:
        exchange = {"results": (), "timeline": ()} | exchange | {"known": 0, "tool_set": 1}
    return render_page(
        "plain_live.html", title=name, conversations=list(conversations.values()), words=words, exchange=exchange,
        style=load_page_asset("view.css"), version=__version__,
    )  # fmt: skip


def _render(data: JsonObject, script: str, *, connects: bool = False) -> str:
    conversations, tool_sets = group_for_links(data)
    return render_page(
        "view.html", connects=connects, data=data, orders=ORDERS, style=load_page_asset("view.css"), script=script,
        conversations=conversations, tool_sets=tool_sets, version=__version__,
    )  # fmt: skip


def group_for_links(data: JsonObject) -> tuple[list[list[JsonObject]], list[Sequence[int]]]:
    """Return the exchanges of a page, grouped by conversation, and the distinct lists of tools.

    These fields are added to each exchange: its ``number``, the 1-based number of its ``tool_set``, and the number of
    messages that are already ``known`` from the exchange with the number ``before``.
    """
    conversations: dict[int, list[JsonObject]] = {}
    tool_sets: dict[tuple[int, ...], int] = {}
    previous: JsonObject = {"number": 0, "prompt": ()}
    for number, exchange in enumerate(data["exchanges"], start=1):
        group = conversations.setdefault(exchange["conversation"], [])
        earlier = group[-1] if group else previous
        known = _count_known(earlier["prompt"], exchange["prompt"]) if data["goes_on"] else 0
        tool_set = tool_sets.setdefault(tuple(exchange["tools"]), len(tool_sets) + 1)
        previous = {**exchange, "number": number, "before": earlier["number"], "known": known, "tool_set": tool_set}
        group.append(previous)
    return list(conversations.values()), list(tool_sets)


def _count_known(earlier: Sequence[int], prompt: Sequence[int]) -> int:
    pairs = enumerate(zip(earlier, prompt, strict=False))
    same = next((index for index, (one, other) in pairs if one != other), min(len(earlier), len(prompt)))
    return min(same, max(0, len(prompt) - 1))
