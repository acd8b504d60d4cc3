"""Pages of what models wrote: one HTML file each, that needs nothing else and runs nothing but what is its own.

A page's Content-Security-Policy names its style sheet and its script by their hashes, and allows nothing from anywhere.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from jinja2 import Environment, StrictUndefined

from adapter.core import package_data


class Bar(NamedTuple):
    """A row of a report's chart: ``shares`` with a class of the style sheet each, one drawn over the other."""

    name: str
    label: str
    shares: Sequence[tuple[str, float]]
    group: str = ""
    is_first: bool = False
    interval: tuple[float, float] | None = None


class Table(NamedTuple):
    """``texts``: the number of columns of text, before those of numbers. A row of two cells spans all columns."""

    title: str
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1
    best: int | None = None


def page_asset(name: str) -> str:
    """A file of ``prompts/pages``."""
    return (package_data.data_folder("prompts") / "pages" / name).read_text(encoding="utf-8")


def render_page(name: str, *, connects: bool = False, **values: object) -> str:
    """The page ``name``, with all ``values`` escaped. Its ``style`` and ``script`` are among them, or stand in it as
    they are. ``connects``: its script asks the server that it is from."""
    source = page_asset(name)
    style = values.get("style") or source.partition("<style>")[2].partition("</style>")[0]
    allowed = [f"style-src '{_hash(str(style))}'"]
    allowed += [f"script-src '{_hash(str(values['script']))}'"] if "script" in values else []
    allowed += ["connect-src 'self'"] if connects else []
    policy = "; ".join(["default-src 'none'", *allowed, "base-uri 'none'", _form_action(source)])
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(source).render(policy=policy, connects=connects, **values)


def _form_action(source: str) -> str:
    """Where the page's forms may go: nowhere unless it has one that is sent."""
    return "form-action 'self'" if 'method="post"' in source else "form-action 'none'"


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
