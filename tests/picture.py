"""The pictures of docs/troubleshooting.md, of a real recording: ``python -m tests.generate --pictures`` takes them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai

from adapter import wrap
from tests.browser import chromium, prefer
from tests.command_line import adapter
from tests.scripted_server import CHAT, ScriptedServer, as_json
from tests.server.test_wrap import completion

DOCS = Path(__file__).parent.parent / "docs"
PICTURES = {
    "view": ("light", 1060, 960, 0.75),
    "view_dark": ("dark", 1060, 560, 0.75),
    "view_narrow": ("light", 400, 800, 0.75),
}
"""The color scheme, width and height in CSS pixels, and device pixels per CSS pixel, by name."""
CALL = "<tool_call>\n%s\n</tool_call>"
SAID = [
    CALL % '{"name": "search", "arguments": {"pattern": "port"}}',
    "<think>Maybe <tool_call>{}</tool_call>? No.</think>\nTags like `<tool_call>` are mine to write:\n"
    + CALL % """{"name": "ReadFile", "arguments": {'path': 'README.md',}}""",
    'The model was asked for this:\n```json\n{"name": "write_file", "arguments": {}}\n```\nThat would write nothing.',
    "The port is 8000.",
]
RESULT = "README.md:3: the port, and what ends a turn: <|im_end|>"


def tool(name: str, argument: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
    return {"type": "function", "function": {"name": name, "description": f"{name}.", "parameters": parameters}}


TOOLS: Any = [tool("search", "pattern"), *(tool(name, "path") for name in ("read_file", "write_file", "delete_file"))]


def record(file: Path) -> None:
    """Record a conversation of a wrapped client with a server that answers `SAID`."""
    messages: list[Any] = [{"role": "user", "content": "Which port does the server listen on?"}]
    with ScriptedServer() as server, openai.OpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
        server.on(CHAT, *(as_json(200, completion(said)) for said in SAID))
        for _ in SAID:
            answer = wrap(client, record=file, guardrails="off").chat.completions.create(
                model="qwen3-4b", messages=messages, tools=TOOLS
            )
            message = answer.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls or ():
                messages.append({"role": "tool", "tool_call_id": call.id, "content": RESULT})
            if not message.tool_calls:
                messages.append({"role": "user", "content": "And now?"})


def pictures() -> Iterator[tuple[str, bytes]]:
    """Return the name and PNG of each picture, of the second exchange."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        record(folder / "said.jsonl")
        done = adapter("view", "said.jsonl", "--html", "page.html", cwd=folder)
        assert done.returncode == 0, done.stderr
        with chromium(folder) as chrome:
            for picture, (colors, width, height, scale) in PICTURES.items():
                prefer(chrome, colors)
                size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
                chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
                chrome.get("about:blank")
                chrome.get(f"{(folder / 'page.html').as_uri()}#2")
                yield picture, chrome.get_screenshot_as_png()
