"""The tools of Maki, from its "Tools" documentation page.

The document requires absolute paths. Relative paths are also accepted and start at the workspace root, and results
contain relative paths. Times are in seconds, lines are 1-based.
"""

from __future__ import annotations

from adapter.dialects.maki.batch_tools import Batch, CodeExecution, MakiTask
from adapter.dialects.maki.edit_tools import MakiEdit, MakiWrite, MultiEdit
from adapter.dialects.maki.memory_tools import MakiMemory, SkillTool
from adapter.dialects.maki.read_tools import Index, Read
from adapter.dialects.maki.search_tools import GrepTool, MakiGlobTool
from adapter.dialects.maki.shell_tools import MakiBash
from adapter.dialects.maki.user_tools import MakiTodoWrite, QuestionTool
from adapter.dialects.maki.web_tools import MakiWebSearch, WebFetch
from adapter.dialects.toolset import Dialect

__all__ = ["DIALECT"]

DIALECT = Dialect(
    name="maki",
    title="Maki",
    classes=(
        MakiBash,
        Read,
        MakiWrite,
        MakiEdit,
        MultiEdit,
        MakiGlobTool,
        GrepTool,
        Index,
        Batch,
        CodeExecution,
        QuestionTool,
        WebFetch,
        MakiWebSearch,
        MakiTask,
        MakiTodoWrite,
        MakiMemory,
        SkillTool,
    ),
    preapproved=frozenset({"network", "skill"}),
)
