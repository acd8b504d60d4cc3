"""Modules whose first use is slow, imported before the process is forked, so that each fork has them.

Patterns are compiled, and tables of markers and tool schemas created, without files, threads or models.
"""

from __future__ import annotations

from adapter.conversation.guardrails.guardrails import Guardrails
from adapter.dialects import get_dialect, list_dialect_names
from adapter.parsing.parser import parse

TEXT = 'Hello.\n<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}\n</tool_call>'

for dialect in list_dialect_names():
    tools = get_dialect(dialect).tools
    for format in (None, "hermes"):
        for text in (TEXT, "It is done.\n"):
            Guardrails(tools).check([{"role": "user", "content": "Do it."}], parse(text, tools, format))
