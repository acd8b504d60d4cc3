"""ProxyAI's tools for skills, sub-agents and the end of a run."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from adapter.dialects.proxyai.parameters import render_message
from adapter.dialects.tool_class import Aliases, Rendered, ToolClass, ToolMetadata, require_outcome
from adapter.tools.argument_synonyms import WORKING_DIRECTORY
from adapter.tools.operations import (
    AgentReport,
    Finish,
    LoadSkill,
    Operation,
    Outcome,
    RunSubagent,
    SkillLoaded,
    TaskFinished,
)
from adapter.tools.schema_simplify import REQUIRED_KEY


class LoadSkillTool(ToolClass):
    """Load a skill. Its instructions follow as a new message of the user. The user is asked first."""

    naming = ToolMetadata(
        "LoadSkill",
        aliases=("skill", "use_skill"),
        effect="skill",
        example={"skill_name": "Release"},
        needs="skills",
        failure=render_message,
    )
    skill_name: Annotated[str, Field(description="Title of the skill, from the list"), Aliases("name", "title")]

    def to_operation(self) -> Operation:
        return LoadSkill(self.skill_name, "message")

    def render(self, outcome: Outcome) -> Rendered:
        skill = require_outcome(outcome, SkillLoaded).skill
        fields = {"title": skill.title, "description": skill.description, "queued": True}
        return f"The skill {skill.title} was loaded; its instructions follow.", fields


class ProxyAITask(ToolClass):
    """Let a sub-agent do a task. It knows nothing but the prompt, and only its report comes back."""

    naming = ToolMetadata(
        "Task",
        aliases=("Agent", "delegate", "run_agent"),
        effect="state",
        example={
            "description": "Find the parser",
            "prompt": "Find where dates are parsed and name the file and function.",
            "subagent_type": "research",
        },
        needs="agents",
    )
    description: Annotated[
        str, Field(description="Short label, shown to the user", json_schema_extra={REQUIRED_KEY: True})
    ] = ""
    prompt: Annotated[str, Field(description="All that the sub-agent must know"), Aliases("task", "instructions")]
    subagent_type: Annotated[str, Field(description="Kind of sub-agent"), Aliases("agent_type", "agentType")]
    model: Annotated[str | None, Field(description="Another model than this one")] = None
    project_path: Annotated[
        str | None, Field(description="Folder to work in"), Aliases("projectPath", *WORKING_DIRECTORY)
    ] = None

    def to_operation(self) -> Operation:
        label = self.description or " ".join(self.prompt.split()[:5])
        return RunSubagent(self.prompt, self.subagent_type, label, self.model, self.project_path)

    def render(self, outcome: Outcome) -> Rendered:
        report = require_outcome(outcome, AgentReport)
        fields = {
            "agentType": report.kind,
            "description": report.description,
            "prompt": report.prompt,
            "output": report.output,
            "executionTime": round(report.seconds * 1000),
            "totalTokens": report.tokens,
        }
        return report.output, fields


class Exit(ToolClass):
    """End the run. For when the task is done, or cannot be done."""

    naming = ToolMetadata("Exit", aliases=("finish", "done", "end"), effect="state")

    def to_operation(self) -> Operation:
        return Finish()

    def render(self, outcome: Outcome) -> Rendered:
        require_outcome(outcome, TaskFinished)
        return "", None
