"""Render HTML pages as single files that load nothing and run only their own script.

A page's Content-Security-Policy allows only the page's own style sheet and script, which are identified by their
hashes.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from jinja2 import Environment, FunctionLoader, StrictUndefined

from adapter.core import package_data
from adapter.core.text.display_escaping import escape_for_display


class Bar(NamedTuple):
    """A row of a bar chart with overlapping bars. ``shares`` has the style class and the length (0 to 1) of each
    bar."""

    name: str
    label: str
    shares: Sequence[tuple[str, float]]
    group: str = ""
    is_first: bool = False
    interval: tuple[float, float] | None = None


class Table(NamedTuple):
    """A table of a report. The first ``texts`` columns contain text, the others numbers.

    ``best`` is the index of the row to highlight. In a row with only two cells, the second cell spans all other
    columns.
    """

    title: str
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1
    best: int | None = None


def load_page_asset(name: str) -> str:
    """Return the text of a file in ``prompts/pages``."""
    return (package_data.find_data_directory("prompts") / "pages" / name).read_text(encoding="utf-8")


def render_page(name: str, *, connects: bool = False, runs_python: bool = False, **values: object) -> str:
    """Render the page ``name`` with ``values``, which are escaped.

    ``style`` and ``script`` are taken from ``values`` or from the page. If ``connects`` is true, the script may send
    requests to the page's own server. If ``runs_python`` is true, it may also load Pyodide, a WebAssembly program, from
    there.
    """
    source = load_page_asset(name)
    style = values.get("style") or source.partition("<style>")[2].partition("</style>")[0]
    allowed = [f"style-src '{_hash(str(style))}'"]
    programs = " 'self' 'wasm-unsafe-eval'" if runs_python else ""
    allowed += [f"script-src '{_hash(str(values['script']))}'{programs}"] if "script" in values else []
    allowed += ["connect-src 'self'"] if connects else []
    policy = "; ".join(["default-src 'none'", *allowed, "base-uri 'none'", _build_form_action(source)])
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_show_hidden,
        loader=FunctionLoader(load_page_asset),
    )  # fmt: skip
    return environment.from_string(source).render(policy=policy, connects=connects, **values)


def _show_hidden(value: object) -> object:
    """Escape hidden characters in a page's value, such as characters that reverse the text direction."""
    return escape_for_display(value, keep="\n\t") if type(value) is str else value


def _build_form_action(source: str) -> str:
    """Return the Content-Security-Policy for forms. If the page has a form, it may be sent to the page's own server."""
    return "form-action 'self'" if '<form method="' in source else "form-action 'none'"


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
