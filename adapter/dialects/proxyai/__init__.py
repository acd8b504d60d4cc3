"""The tools of ProxyAI, from its "Tools" reference.

Names, arguments, defaults and result fields follow the document. Each result is text for the model, with the documented
fields as ``data``. A failed call has the document's error fields. Results contain paths as the model wrote them.
Aliases are ProxyAI's own names for other agents' tools, and other common names.
"""

from __future__ import annotations

from adapter.dialects.dialect import Dialect
from adapter.dialects.proxyai.command_tools import BashOutput, KillShell, ProxyAIBash
from adapter.dialects.proxyai.file_tools import IntelliJSearch, ProxyAIEdit, ProxyAIReadFile, ProxyAIWrite
from adapter.dialects.proxyai.session_tools import AskUserQuestion, Exit, LoadSkillTool, ProxyAITask, ProxyAITodoWrite
from adapter.dialects.proxyai.web_tools import GetLibraryDocs, ProxyAIWebSearch, ResolveLibraryId

__all__ = ["DIALECT"]
DIALECT = Dialect(
    name="proxyai",
    title="ProxyAI",
    classes=(
        *(ProxyAIReadFile, IntelliJSearch, ProxyAIEdit, ProxyAIWrite, ProxyAIBash, BashOutput, KillShell),
        *(ProxyAIWebSearch, ResolveLibraryId, GetLibraryDocs),
        *(LoadSkillTool, AskUserQuestion, ProxyAITodoWrite, ProxyAITask, Exit),
    ),
)
