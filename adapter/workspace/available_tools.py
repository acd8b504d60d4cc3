"""Which tools a session has, and which of them it can offer where it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from adapter.core.arguments import check_types
from adapter.core.errors import UsageError
from adapter.core.program_lookup import find_program
from adapter.tools.operations import Effect, Skill
from adapter.tools.tool import Tool, ToolSet
from adapter.workspace.capabilities import local_search
from adapter.workspace.capabilities.host import Host


def merge_tools(tools: ToolSet, own: Sequence[Tool]) -> ToolSet:
    for tool in own:
        if tools.match(tool.name) is not None:
            raise UsageError(f"the tool {tool.name!r} is there already; give yours another name")
        if tool.validate is None:
            raise UsageError(f"the tool {tool.name!r} has no function to run; make it with adapter.tool(..., function)")
    return ToolSet([*tools.values(), *own])


def select_tools(tools: ToolSet, names: Iterable[str]) -> ToolSet:
    chosen = []
    for name in names:
        check_types("Workspace", only=(name, str))
        tool = tools.match(name)
        if tool is None:
            near = " or ".join(tools.nearest(name)) or ", ".join(tools)
            raise UsageError(f"this dialect has no tool {name!r}; did you mean {near}?")
        chosen.append(tool)
    return ToolSet(chosen)


def available_tools(whole: ToolSet, host: Host, skills: Sequence[Skill], allowed: frozenset[Effect] | None) -> ToolSet:
    """The tools whose needs the host meets, and whose effects are allowed, with what there is to choose from."""
    present = host.capabilities() | ({"skills"} if skills else set())
    return ToolSet(
        _with_what_there_is(tool, host, skills)
        for tool in whole.values()
        if (tool.needs is None or tool.needs in present)
        and (not tool.program or find_program(tool.program))
        and (allowed is None or tool.effect in allowed)
    )


def _with_what_there_is(tool: Tool, host: Host, skills: Sequence[Skill]) -> Tool:
    if tool.needs == "search" and host.search == "embedded":
        return replace(tool, description=local_search.DESCRIPTION)
    if tool.needs == "skills":
        return _with_choices(tool, {skill.title: skill.description for skill in skills})
    if tool.needs == "agents" and host.agents is not None:
        return _with_choices(tool, host.agents.kinds)
    return tool


def _with_choices(tool: Tool, choices: Mapping[str, str]) -> Tool:
    """``tool``, its description naming what there is; the names stand in the first sentence, which is all that
    short prompts show."""
    first, end, rest = tool.description.partition(".")
    listed = "".join(f"\n- {name}: {text}" for name, text in choices.items() if text)
    return replace(tool, description=f"{first} ({' | '.join(choices)}){end}{rest}{listed}")
