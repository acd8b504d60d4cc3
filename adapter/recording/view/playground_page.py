"""Render the page of the playground, which parses a model's raw text while it is typed."""

from __future__ import annotations

from collections.abc import Iterator

from adapter.core.events import JsonObject
from adapter.core.version import __version__
from adapter.parsing.formats import FORMATS, get_format
from adapter.parsing.parse_policy import POLICIES
from adapter.recording.html_pages import load_page_asset, render_page
from adapter.recording.view.exchange_page_data import format_pretty_json

FINISH_REASONS = ("stop", "length", "tool_calls")

TOOLS: list[JsonObject] = [
    {
        "name": "get_weather",
        "description": "Get the weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    },
    {
        "name": "write_file",
        "description": "Write a file.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
            "required": ["path", "content"],
        },
    },
]
"""The tool definitions that the page shows initially."""

_CALLS: list[tuple[str, JsonObject]] = [
    ("get_weather", {"city": "Oslo", "days": 3}),
    ("write_file", {"path": "notes.md", "content": 'Pack a "warm" coat.\n'}),
]
_ENCODED = ("hermes", "qwen3_coder", "mistral", "harmony", "glm45", "pythonic")
_DAMAGED = {
    "a missing bracket and a trailing comma": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo",}\n'
    "</tool_call>",
    "reasoning that drafts a call": '<think>Maybe <tool_call>{"name": "get_weather"}</tool_call>?</think>\n'
    "Which city do you mean?",
    "a call in a code block": 'I will write it.\n```json\n{"tool": "write_file", "args": {"file": "notes.md", '
    '"content": "warm coat"}}\n```',
    "one broken call between two good ones": "\n".join(
        f"<tool_call>{call}</tool_call>"
        for call in (
            '{"name": "get_weather", "arguments": {"city": "Oslo"}}',
            '{"name": "get_weather", "arguments": {"city": Bergen"}}',
            '{"name": "get_weather", "arguments": {"city": "Bodø"}}',
        )
    ),
}


def render_playground_page(*, has_server: bool = True) -> str:
    """Render the page. If ``has_server`` is false, the page runs `read_for_page` itself, with Pyodide. It expects this
    Python runtime in the folder ``pyodide``, and this package in ``adapter.zip``."""
    data: JsonObject = {
        "examples": list(map(list, _list_examples())),
        "tools": format_pretty_json(list(TOOLS)),
        "bad": [],
    }
    scripts = ["spans.js", "playground.js", *(["playground_pyodide.js"] if not has_server else [])]
    return render_page(
        "playground.html", connects=True, runs_python=not has_server, has_server=has_server, data=data,
        formats=sorted(FORMATS), policies=sorted(POLICIES), reasons=FINISH_REASONS,
        style=load_page_asset("view.css") + load_page_asset("playground.css"),
        script="".join(map(load_page_asset, scripts)),
        version=__version__,
    )  # fmt: skip


def _list_examples() -> Iterator[tuple[str, str]]:
    for name in _ENCODED:
        yield name, f"Let me look.\n{get_format(name).encode_calls(_CALLS)}"
    yield from _DAMAGED.items()
