"""The `Dialect` class: a named set of tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet

if TYPE_CHECKING:
    from adapter.dialects.tool_class import ToolClass
    from adapter.tools.operations import Effect


@dataclass(frozen=True, slots=True)
class Dialect:
    """A named set of tools: tool classes, in the order of the prompt, and then tools that are defined as data.

    ``preapproved``: effects that need no approval according to the dialect's document. ``basic``: names of the tools
    that suffice for most tasks; empty if all are needed.
    """

    name: str
    title: str
    classes: Sequence[type[ToolClass]]
    defined: tuple[Tool, ...] = ()
    preapproved: frozenset[Effect] = frozenset()
    basic: frozenset[str] = frozenset()

    @property
    def tools(self) -> ToolSet:
        return ToolSet([*(kind.build_tool() for kind in self.classes), *self.defined])

    def list_tool_names(self, aliases: bool = False) -> list[str]:
        """Return the tools' documented names and, if ``aliases`` is true, their second names."""
        names = [
            name for kind in self.classes for name in (kind.naming.name, *(kind.naming.second_names if aliases else ()))
        ]
        return names + [tool.name for tool in self.defined]
