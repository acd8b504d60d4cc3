"""The tools of Maki, from its "Tools" documentation page.

The document requires absolute paths. Relative paths are also accepted, from the workspace root, and results contain
relative paths. Times are in seconds, lines are 1-based.
"""

from __future__ import annotations

from adapter.dialects.dialect import Dialect
from adapter.dialects.maki.command_tools import Batch, CodeExecution, MakiBash
from adapter.dialects.maki.file_tools import GrepTool, Index, MakiEdit, MakiGlobTool, MakiWrite, MultiEdit, Read
from adapter.dialects.maki.session_tools import MakiMemory, MakiTask, MakiTodoWrite, QuestionTool, SkillTool
from adapter.dialects.maki.web_tools import MakiWebSearch, WebFetch

__all__ = ["DIALECT"]
DIALECT = Dialect(
    name="maki",
    title="Maki",
    classes=(
        *(MakiBash, Read, MakiWrite, MakiEdit, MultiEdit, MakiGlobTool, GrepTool, Index, Batch, CodeExecution),
        *(QuestionTool, WebFetch, MakiWebSearch, MakiTask, MakiTodoWrite, MakiMemory, SkillTool),
    ),
    preapproved=frozenset({"network", "skill"}),
)
