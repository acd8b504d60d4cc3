"""Maki's tools for memory and skills."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from adapter.core.events import Json
from adapter.dialects import result_formatting
from adapter.dialects.maki.parameters import lower_text
from adapter.dialects.tool_class import Aliases, Rendered, ToolClass, ToolMetadata, require_outcome
from adapter.tools.argument_synonyms import CONTENT, PATH
from adapter.tools.operations import (
    DeleteMemory,
    LoadSkill,
    MemoryChanged,
    MemoryList,
    MemoryNote,
    Operation,
    Outcome,
    SkillLoaded,
    ViewMemory,
    WriteMemory,
)

_COMMANDS = {"read": "view", "list": "view", "create": "write", "save": "write", "update": "write", "remove": "delete"}


def _normalize_command(value: Json) -> Json:
    command = lower_text(value)
    return _COMMANDS.get(command, command) if isinstance(command, str) else command


class MakiMemory(ToolClass):
    """Keep notes about this project across sessions: view, write or delete one."""

    naming = ToolMetadata(
        "memory",
        aliases=("memory_bank", "notes"),
        effect="state",
        example={"command": "write", "path": "testing.md", "content": "Run `make check` before each commit.\n"},
        needs="memory",
    )
    command: Annotated[
        Literal["view", "write", "delete"],
        Field(description="view, write or delete"),
        BeforeValidator(_normalize_command),
        Aliases("action", "operation", "cmd"),
    ]
    path: Annotated[str | None, Field(description="Relative path (omit to list all)"), Aliases(*PATH, "name")] = None
    content: Annotated[str | None, Field(description="Content for write"), Aliases(*CONTENT)] = None

    @model_validator(mode="after")
    def _check_arguments(self) -> MakiMemory:
        if self.command != "view" and not self.path:
            raise ValueError(f"{self.command} needs the path of the note")
        if self.command == "write" and self.content is None:
            raise ValueError("the command write needs the argument content")
        return self

    def to_operation(self) -> Operation:
        match self.command:
            case "view":
                return ViewMemory(self.path or None)
            case "write":
                return WriteMemory(self.path or "", self.content or "")
            case "delete":
                return DeleteMemory(self.path or "")

    def render(self, outcome: Outcome) -> Rendered:
        match outcome:
            case MemoryList() | MemoryNote() | MemoryChanged():
                return result_formatting.format_memory(outcome), None
            case _:
                raise TypeError(f"expected a memory outcome, got {type(outcome).__name__}")


class SkillTool(ToolClass):
    """Load a skill: detailed instructions for a specific kind of task."""

    naming = ToolMetadata(
        "skill", aliases=("load_skill", "use_skill"), effect="skill", example={"name": "release"}, needs="skills"
    )
    name: Annotated[str, Field(description="Skill name"), Aliases("skill_name", "skill", "title")]

    def to_operation(self) -> Operation:
        return LoadSkill(self.name, "result")

    def render(self, outcome: Outcome) -> Rendered:
        return require_outcome(outcome, SkillLoaded).text, None
