"""Select the tools of a session that can run on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from adapter.core.argument_checks import check_types
from adapter.core.errors import UsageError
from adapter.core.program_lookup import find_program
from adapter.tools.function_tools import tool as as_tool
from adapter.tools.operations import Effect, Skill
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet
from adapter.workspace.capabilities import local_search
from adapter.workspace.capabilities.host_capabilities import Host


def to_tool(tool: Tool | Callable[..., object] | None) -> Tool:
    """Return ``tool``, or the tool that a function defines. Raises UsageError for None."""
    if tool is None:
        raise UsageError("Workspace: tools must be functions or Tools, got None")
    return tool if isinstance(tool, Tool) else as_tool(tool)


def merge_tools(tools: ToolSet, added: Sequence[Tool]) -> ToolSet:
    """Return ``tools`` and ``added`` together. Raises UsageError if two tools have the same name, or if an added tool
    has no function."""
    for index, tool in enumerate(added):
        if tools.has_name(tool.name) or any(tool.name == other.name for other in added[:index]):
            raise UsageError(f"the tool {tool.name!r} already exists; choose another name")
        if tool.validate is None:
            raise UsageError(
                f"the tool {tool.name!r} has no function to run; create it with adapter.tool(..., function)"
            )
    return ToolSet([*tools.values(), *added])


def select_tools(tools: ToolSet, names: Iterable[str]) -> ToolSet:
    """Return the tools with the given names or aliases. Raises UsageError for an unknown name."""
    chosen = []
    for name in names:
        check_types("Workspace", only=(name, str))
        tool = tools.match(name)
        if tool is None:
            near = " or ".join(tools.find_nearest(name))
            hint = f"did you mean {near}?" if near else f"expected one of: {', '.join(tools)}"
            raise UsageError(f"this dialect has no tool {name!r}; {hint}")
        chosen.append(tool)
    return ToolSet(chosen)


def select_available_tools(
    whole: ToolSet, host: Host, skills: Sequence[Skill], allowed: frozenset[Effect] | None
) -> ToolSet:
    """Return the tools that the host can run and whose effect is in ``allowed`` (None: any effect).

    The descriptions of the tools that load skills and start sub-agents list the available ones.
    """
    present = host.capabilities() | ({"skills"} if skills else set())
    return ToolSet(
        _complete_description(tool, host, skills)
        for tool in whole.values()
        if (tool.needs is None or tool.needs in present)
        and (not tool.program or find_program(tool.program))
        and (allowed is None or tool.effect in allowed)
    )


def _complete_description(tool: Tool, host: Host, skills: Sequence[Skill]) -> Tool:
    if tool.needs == "search" and host.search == "embedded":
        return replace(tool, description=local_search.DESCRIPTION)
    if tool.needs == "skills":
        return _with_choices(tool, {skill.title: skill.description for skill in skills})
    if tool.needs == "agents" and host.agents is not None:
        return _with_choices(tool, host.agents.kinds)
    return tool


def _with_choices(tool: Tool, choices: Mapping[str, str]) -> Tool:
    """List the choices at the end of the tool's description, and their names in its first sentence. Short prompts show
    only that sentence."""
    first, end, rest = tool.description.partition(".")
    listed = "".join(f"\n- {name}: {text}" for name, text in choices.items() if text)
    return replace(tool, description=f"{first} ({' | '.join(choices)}){end}{rest}{listed}")
