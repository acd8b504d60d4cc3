"""Answers under `tool_choice: none`, in every format: calls are dropped, whole, cut or broken; examples are text."""

from __future__ import annotations

import pytest

from adapter.parsing.formats import FORMATS, get_format
from adapter.protocols.chat_request_translation import translate_chat_request
from adapter.protocols.openai_chat_response import StreamedCompletion
from adapter.protocols.translation_options import PromptSettings, TranslationOptions
from tests.scripted_server import delta

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}, "text": {"type": "string"}}}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in ("read_file", "write_file")]
ENDINGS = {"whole": (1.0, "stop"), "unclosed": (0.7, "stop"), "cut": (0.7, "length")}
EXAMPLE = '```json\n{"name": "write_file", "arguments": {"path": "a.py", "text": "x"}}\n```'
TEXTS = [
    EXAMPLE,
    f"A call looks like this:\n\n{EXAMPLE}\n\nYou can also change its path.",
    "write_file takes a path and a text; read_file(path) only takes a path.",
    '```python\nread_file(path="a.py")\nprint("done")\n```\nThat is all.',
    "1. Read the file.\n2. Write it.",
]


def answer(format: str, text: str, reason: str) -> tuple[str, list[str], bool]:
    """Return the content, the tools of dropped calls, and whether the client gets a call."""
    prompt = PromptSettings(format=format, generation_prompt="")
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hi"}], "tools": TOOLS}
    request = translate_chat_request({**body, "tool_choice": "none"}, TranslationOptions(prompt=prompt))
    completion, chunks = StreamedCompletion(request), []
    for start in range(0, len(text), 7):
        chunks += completion.feed(delta(text[start : start + 7]))
    chunks += [*completion.feed(delta(finish_reason=reason)), *completion.close()]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    dropped = [each["name"] for chunk in chunks for each in chunk.get("adapter", {}).get("dropped", ())]
    return "".join(each.get("content") or "" for each in deltas), dropped, any("tool_calls" in each for each in deltas)


@pytest.mark.parametrize("ending", ENDINGS)
def test_calls_are_dropped(ending):
    """Even if the format has no markers, so that only the names of tools tell a call."""
    share, reason = ENDINGS[ending]
    shown = {}
    for format in FORMATS.all:
        call = get_format(format.name).encode_calls([("write_file", {"path": "a.py", "text": "one\ntwo"})])
        content, dropped, has_call = answer(format.name, call[: int(len(call) * share)], reason)
        if content.strip() or has_call or dropped != ["write_file"]:
            shown[format.name] = content, dropped
    assert shown == {}


@pytest.mark.parametrize("text", TEXTS)
def test_texts_stay(text):
    lost = {}
    for format in FORMATS.all:
        content, dropped, has_call = answer(format.name, text, "stop")
        if content.strip() != text or dropped or has_call:
            lost[format.name] = content, dropped
    assert lost == {}
