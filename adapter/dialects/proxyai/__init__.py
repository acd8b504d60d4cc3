"""The tools of ProxyAI, from its "Tools" reference.

Names, arguments, defaults and result fields follow the document. Each result is text for the model, with the documented
fields as ``data``. A failed call has the document's error fields. Results contain paths as the model wrote them.
Aliases are ProxyAI's own names for other agents' tools, and other common names.
"""

from __future__ import annotations

from adapter.dialects.proxyai.agent_tools import Exit, LoadSkillTool, ProxyAITask
from adapter.dialects.proxyai.edit_tools import ProxyAIEdit, ProxyAIWrite
from adapter.dialects.proxyai.read_tools import ProxyAIReadFile
from adapter.dialects.proxyai.search_tools import IntelliJSearch
from adapter.dialects.proxyai.shell_tools import BashOutput, KillShell, ProxyAIBash
from adapter.dialects.proxyai.user_tools import AskUserQuestion, ProxyAITodoWrite
from adapter.dialects.proxyai.web_tools import GetLibraryDocs, ProxyAIWebSearch, ResolveLibraryId
from adapter.dialects.toolset import Dialect

__all__ = ["DIALECT"]

DIALECT = Dialect(
    name="proxyai",
    title="ProxyAI",
    classes=(
        ProxyAIReadFile,
        IntelliJSearch,
        ProxyAIEdit,
        ProxyAIWrite,
        ProxyAIBash,
        BashOutput,
        KillShell,
        ProxyAIWebSearch,
        ResolveLibraryId,
        GetLibraryDocs,
        LoadSkillTool,
        AskUserQuestion,
        ProxyAITodoWrite,
        ProxyAITask,
        Exit,
    ),
)
