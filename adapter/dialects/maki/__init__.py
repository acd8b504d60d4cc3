"""The tools of Maki, as its page "Tools" documents them.

Paths are documented as absolute; relative ones mean the workspace root, which
is what results name them by. All times are seconds, lines count from 1.
"""

from __future__ import annotations

from adapter.dialects.dialect import Dialect
from adapter.dialects.maki.calls import Batch, CodeExecution, Task
from adapter.dialects.maki.changing import Edit, MultiEdit, Write
from adapter.dialects.maki.commands import Bash
from adapter.dialects.maki.finding import GlobTool, GrepTool
from adapter.dialects.maki.knowledge import Memory, SkillTool
from adapter.dialects.maki.people import QuestionTool, TodoWrite
from adapter.dialects.maki.reading import Index, Read
from adapter.dialects.maki.web import WebFetch, WebSearch

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
    unasked=frozenset({"network", "skill"}),
)
