"""The page of `adapter view`: its data stands in an element that no browser runs."""

from __future__ import annotations

from adapter.prompting.pages import part, rendered
from adapter.values.events import JsonObject
from adapter.values.version import __version__

ORDERS = (
    ("", "as they came"), ("newest", "newest first"), ("duration_s", "by seconds"),
    ("first_s", "by seconds to the first piece"), ("prompt_tokens", "by tokens of the prompt"),
    ("written_tokens", "by tokens written"), ("retry", "by retries"),
)  # fmt: skip
"""How the list can be sorted: the names of figures, the most first, and what they are called."""


def page(data: JsonObject) -> str:
    """``data``: of `adapter.transcripts.viewed`."""
    return rendered(
        "view.html", data=data, orders=ORDERS, style=part("view.css"), script=part("view.js"), version=__version__
    )
