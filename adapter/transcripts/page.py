"""The page of `adapter view`: one HTML file that needs nothing else, and runs no script but its own.

Its data stands in an element that no browser runs; the Content-Security-Policy allows the one script and the one style
sheet by their hashes, and nothing from anywhere.
"""

from __future__ import annotations

import base64
import hashlib

from jinja2 import Environment, StrictUndefined

from adapter.prompting import resources
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
    folder = resources.folder("prompts") / "pages"
    template, style, script = (
        (folder / name).read_text(encoding="utf-8") for name in ("view.html", "view.css", "view.js")
    )
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(template).render(
        data=data,
        orders=ORDERS,
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
        version=__version__,
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
