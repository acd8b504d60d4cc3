"""The page of `adapter view`: its data stands in an element that no browser runs."""

from __future__ import annotations

from adapter.core.events import JsonObject
from adapter.core.version import __version__
from adapter.parsing.formats import FORMATS
from adapter.parsing.parse_policy import POLICIES
from adapter.recording.html import page_asset, render_page
from adapter.recording.view.page_data import PageData

ORDERS = (
    ("", "as they came"), ("newest", "newest first"), ("duration_s", "by seconds"),
    ("first_s", "by seconds to the first piece"), ("prompt_tokens", "by tokens of the prompt"),
    ("written_tokens", "by tokens written"), ("retry", "by retries"),
)  # fmt: skip
"""How the list can be sorted: the names of figures, the most first, and what they are called."""


def page(data: JsonObject) -> str:
    """``data``: of `adapter.recording.view.page_data`."""
    return _rendered(data, page_asset("view.js"))


def live_page(name: str) -> str:
    """The page that asks the server which it is from. ``name``: what stands above it."""
    data = PageData(name, "live").data | {"live": True, "formats": sorted(FORMATS), "policies": sorted(POLICIES)}
    return _rendered(data, page_asset("view.js") + page_asset("live.js"), connects=True)


def _rendered(data: JsonObject, script: str, *, connects: bool = False) -> str:
    return render_page(
        "view.html", connects=connects, data=data, orders=ORDERS, style=page_asset("view.css"), script=script,
        version=__version__,
    )  # fmt: skip
