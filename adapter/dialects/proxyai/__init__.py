"""The tools of ProxyAI, as its "Tools" reference documents them.

Names, arguments, defaults and result fields are the document's. Each result is
a text for the model and, as ``data``, the documented fields; of a failed call
the fields that the document gives for errors. Paths are echoed as they were
given. Aliases are ProxyAI's own for foreign agents, and customary ones.
"""

from __future__ import annotations

from adapter.dialects.dialect import Dialect
from adapter.dialects.proxyai.changing import Edit, Write
from adapter.dialects.proxyai.commands import Bash, BashOutput, KillShell
from adapter.dialects.proxyai.finding import IntelliJSearch
from adapter.dialects.proxyai.people import AskUserQuestion, TodoWrite
from adapter.dialects.proxyai.reading import ReadFile
from adapter.dialects.proxyai.session import Exit, LoadSkillTool, Task
from adapter.dialects.proxyai.web import GetLibraryDocs, ResolveLibraryId, WebSearch

DIALECT = Dialect(
    name="proxyai",
    title="ProxyAI",
    classes=(
        ReadFile,
        IntelliJSearch,
        Edit,
        Write,
        Bash,
        BashOutput,
        KillShell,
        WebSearch,
        ResolveLibraryId,
        GetLibraryDocs,
        LoadSkillTool,
        AskUserQuestion,
        TodoWrite,
        Task,
        Exit,
    ),
)
