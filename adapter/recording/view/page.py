"""Render the page of `adapter view`. Its data is in an element that browsers do not execute."""

from __future__ import annotations

from adapter.core.events import JsonObject
from adapter.core.version import __version__
from adapter.parsing.formats import FORMATS
from adapter.parsing.parse_policy import POLICIES
from adapter.recording.html import page_asset, render_page
from adapter.recording.view.page_data import PageData

ORDERS = (
    ("", "as they came"), ("newest", "newest first"), ("duration_s", "by seconds"),
    ("first_s", "by seconds to the first part"), ("prompt_tokens", "by tokens of the prompt"),
    ("written_tokens", "by tokens written"), ("retry", "by retries"),
)  # fmt: skip
"""Sort orders of the list: the statistic to sort by (largest value first), and the label."""

SCRIPTS = ("spans.js", "list.js", "exchange.js", "view.js")


def page(data: JsonObject) -> str:
    """Render a page. ``data``: data from `adapter.recording.view.page_data`."""
    return _render(data, "".join(map(page_asset, SCRIPTS)))


def live_page(name: str) -> str:
    """Render a page that loads its data from its own server. ``name``: heading of the page."""
    data = PageData(name, "live").data | {"live": True, "formats": sorted(FORMATS), "policies": sorted(POLICIES)}
    return _render(data, "".join(map(page_asset, (*SCRIPTS, "live.js"))), connects=True)


def _render(data: JsonObject, script: str, *, connects: bool = False) -> str:
    return render_page(
        "view.html", connects=connects, data=data, orders=ORDERS, style=page_asset("view.css"), script=script,
        version=__version__,
    )  # fmt: skip
