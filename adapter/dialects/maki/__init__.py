"""The tools of Maki, as its page "Tools" documents them.

Paths are documented as absolute; relative ones mean the workspace root, which
is what results name them by. All times are seconds, lines count from 1.
"""

from __future__ import annotations

from adapter.dialects.maki.batch_tools import Batch, CodeExecution, Task
from adapter.dialects.maki.edit_tools import Edit, MultiEdit, Write
from adapter.dialects.maki.memory_tools import Memory, SkillTool
from adapter.dialects.maki.read_tools import Index, Read
from adapter.dialects.maki.search_tools import GlobTool, GrepTool
from adapter.dialects.maki.shell_tools import Bash
from adapter.dialects.maki.user_tools import QuestionTool, TodoWrite
from adapter.dialects.maki.web_tools import WebFetch, WebSearch
from adapter.dialects.toolset import Dialect

__all__ = ["DIALECT"]

DIALECT = Dialect(
    name="maki",
    title="Maki",
    classes=(
        Bash,
        Read,
        Write,
        Edit,
        MultiEdit,
        GlobTool,
        GrepTool,
        Index,
        Batch,
        CodeExecution,
        QuestionTool,
        WebFetch,
        WebSearch,
        Task,
        TodoWrite,
        Memory,
        SkillTool,
    ),
    preapproved=frozenset({"network", "skill"}),
)
