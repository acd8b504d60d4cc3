"""The tools of ProxyAI, as its "Tools" reference documents them.

Names, arguments, defaults and result fields are the document's. Each result is
a text for the model and, as ``data``, the documented fields; of a failed call
the fields that the document gives for errors. Paths are echoed as they were
given. Aliases are ProxyAI's own for foreign agents, and customary ones.
"""

from __future__ import annotations

from adapter.dialects.proxyai.edit_tools import ProxyAIEdit, ProxyAIWrite
from adapter.dialects.proxyai.read_tools import ProxyAIReadFile
from adapter.dialects.proxyai.search_tools import IntelliJSearch
from adapter.dialects.proxyai.session_tools import Exit, LoadSkillTool, ProxyAITask
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
