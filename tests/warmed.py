"""Modules whose first use is slow, imported before the process is forked, so that each fork has them.

Patterns are compiled, tables of markers and tool schemas created, and a sandbox is tried, by an agent whose answers are
given. A server looks more often whether it is to end, because the tests end hundreds of them.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from tempfile import TemporaryDirectory
from types import SimpleNamespace

from adapter.agent.agent import Agent
from adapter.conversation.guardrails.guardrails import Guardrails
from adapter.dialects import get_dialect, list_dialect_names
from adapter.parsing.parser import Parser, parse
from adapter.protocols.chat_request_translation import translate_chat_request
from adapter.protocols.translation_options import TranslationOptions
from adapter.workspace.sandbox.sandbox import choose_sandbox
from tests.model_text import Script

with suppress(ImportError):
    import uvicorn.server

    vars(uvicorn.server)["asyncio"] = SimpleNamespace(
        **{**vars(asyncio), "sleep": lambda seconds: asyncio.sleep(seconds / 5)}
    )

TEXT = 'Hello.\n<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}\n</tool_call>'

for dialect in list_dialect_names():
    tools = get_dialect(dialect).tools
    asked = {
        "messages": [{"role": "user", "content": "Do it."}],
        "tools": [tool.to_openai() for tool in tools.values()],
    }
    translate_chat_request(asked, TranslationOptions())
    for format in (None, "hermes"):
        Parser(format, tools).feed("Hello")
        for text in (TEXT, "It is done.\n"):
            Guardrails(tools).check([{"role": "user", "content": "Do it."}], parse(text, tools, format))

choose_sandbox("auto")
with TemporaryDirectory() as folder, Agent(folder, Script(TEXT, "Done.")) as agent:
    agent.run("Read it.")
