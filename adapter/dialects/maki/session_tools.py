"""Maki's tools for subagents, questions, to-do lists, memory and skills."""

from __future__ import annotations

from collections import Counter
from functools import partial
from operator import attrgetter
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator
from pydantic.json_schema import SkipJsonSchema

from adapter.core.events import Json
from adapter.dialects import result_formatting
from adapter.dialects.tool_class import NestedModel, Parameter, PathText, Rendered, ToolClass, ToolMetadata, render_as
from adapter.tools import operations as ops
from adapter.tools.argument_synonyms import CONTENT, PATH
from adapter.tools.operations import TodoPriority, TodoStatus, parse_todo_status


def lower_text(value: Json) -> Json:
    return value.strip().lower() if isinstance(value, str) else value


class MakiTask(ToolClass):
    """Run a sub-agent on an independent task: research only reads, general may use all tools."""

    naming = ToolMetadata(
        "task", aliases=("agent", "sub_agent", "run_agent", "delegate", "spawn_agent"), effect="state", needs="agents"
    )
    example = {
        "description": "Find the parser",
        "prompt": "Find where the configuration file is parsed, and name the functions with their lines.",
        "subagent_type": "research",
        "model_tier": "weak",
    }
    description: Annotated[
        str, Parameter("Short task description (3-5 words)", "title", "label", "name", is_required=True)
    ] = ""
    prompt: Annotated[str, Parameter("Detailed prompt", "task", "instructions", "message", "query")]
    subagent_type: Annotated[
        str, Parameter("research (read-only) or general", "agent_type", "type", "kind", "agent")
    ] = "research"
    model_tier: Annotated[
        Literal["current", "strong", "medium", "weak"],
        Parameter("strong, medium or weak (default: the current model)", "tier", "model"),
        BeforeValidator(lower_text),
    ] = "current"

    def to_operation(self) -> ops.Operation:
        description = self.description or " ".join(self.prompt.split()[:5])
        tier = None if self.model_tier == "current" else self.model_tier
        return ops.RunSubagent(self.prompt, self.subagent_type, description, tier)

    def render(self, report: ops.AgentReport) -> Rendered:
        fields = {"output": report.output, "seconds": round(report.seconds, 3), "tokens": report.tokens}
        return report.output or "(no response)", fields


MAX_QUESTIONS = 20
"""Maximum number of questions per call. Maki's document states no limit."""


class OptionItem(NestedModel):
    """An answer to choose from: its text, alone or with a description."""

    label: Annotated[str, Parameter("", "text", "value", "name", "option")]
    description: str = ""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Json) -> Json:
        return value if isinstance(value, dict) else {"label": value if isinstance(value, str) else str(value)}


Options = Annotated[list[OptionItem], WithJsonSchema({"type": "array", "items": {"type": "string"}})]


class QuestionItem(NestedModel):
    """One question, as an object or only its text."""

    question: Annotated[str, Parameter("The question", "text", "prompt", "query")]
    options: Annotated[Options, Parameter("Answers to choose from", "choices")] = Field(default_factory=list)
    multiple: Annotated[bool, Parameter("Several may be chosen", "multi_select", "multi", "allow_multiple")] = False
    header: SkipJsonSchema[str] = ""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Json) -> Json:
        return {"question": value} if isinstance(value, str) else value


class QuestionTool(ToolClass):
    """Ask the user questions, with one or several options to choose from."""

    naming = ToolMetadata(
        "question",
        aliases=("ask_user_question", "ask_user", "ask", "ask_question", "ask_followup_question"),
        effect="state",
        needs="questions",
    )
    example = {"questions": [{"question": "Which port?", "options": ["8000", "9000"], "multiple": False}]}
    questions: Annotated[list[QuestionItem], Parameter("The questions", "question")]

    def to_operation(self) -> ops.Operation:
        questions = [
            ops.Question(
                one.question, one.header, tuple(ops.Option(**dict(each)) for each in one.options), one.multiple
            )
            for one in self.questions
        ]
        # Without headers, questions that begin alike are identified by their whole text.
        keys = Counter(question.key for question in questions)
        distinct = tuple(
            ops.Question(one.text, one.text, one.options, one.multiple) if keys[one.key] > 1 else one
            for one in questions
        )
        return ops.AskUser(distinct, max_questions=MAX_QUESTIONS)

    def render(self, answers: ops.UserAnswers) -> Rendered:
        pairs = zip(answers.questions, answers.chosen, strict=True)
        fields = [{"question": question.text, "answers": list(chosen)} for question, chosen in pairs]
        return result_formatting.format_answers(answers), fields


class TodoItem(NestedModel):
    """One item in the todo list."""

    content: Annotated[str, Parameter("What to do", "task", "text", "title", "description")]
    status: Annotated[
        TodoStatus,
        Parameter("pending, in_progress, completed or cancelled", "state", is_required=True),
        BeforeValidator(lambda value: parse_todo_status(value) if isinstance(value, str) else value),
    ] = "pending"
    priority: Annotated[
        TodoPriority, Parameter("high, medium or low", is_required=True), BeforeValidator(lower_text)
    ] = "medium"


class MakiTodoWrite(ToolClass):
    """Create or update the todo list for work of several steps; pass the whole list."""

    naming = ToolMetadata("todowrite", aliases=("todo", "todos", "update_todos", "write_todos"), effect="state")
    example = {"todos": [{"content": "Run the tests", "status": "in_progress", "priority": "high"}]}
    todos: Annotated[list[TodoItem], Parameter("All items", "items", "tasks", "todo_list")]

    def to_operation(self) -> ops.Operation:
        return ops.SetTodos(tuple(ops.Todo(one.content, one.status, one.priority) for one in self.todos))

    def render(self, todos: ops.TodoList) -> Rendered:
        fields = [{"content": each.content, "status": each.status, "priority": each.priority} for each in todos.todos]
        return result_formatting.format_todos(todos), fields


_COMMANDS = {"read": "view", "list": "view", "create": "write", "save": "write", "update": "write", "remove": "delete"}


def _normalize_command(value: Json) -> Json:
    command = lower_text(value)
    return _COMMANDS.get(command, command) if isinstance(command, str) else command


class MakiMemory(ToolClass):
    """Keep notes about this project across sessions: view, write or delete one."""

    naming = ToolMetadata("memory", aliases=("memory_bank", "notes"), effect="state", needs="memory")
    example = {"command": "write", "path": "testing.md", "content": "Run `make check` before each commit.\n"}
    command: Annotated[
        Literal["view", "write", "delete"],
        Parameter("view, write or delete", "action", "operation", "cmd"),
        BeforeValidator(_normalize_command),
    ]
    path: Annotated[PathText | None, Parameter("Relative path (omit to list all)", *PATH, "name")] = None
    content: Annotated[str | None, Parameter("Content for write", *CONTENT)] = None

    @model_validator(mode="after")
    def _check_arguments(self) -> MakiMemory:
        if self.command != "view" and not self.path:
            raise ValueError(f"the command {self.command!r} needs the argument 'path'")
        if self.command == "write" and self.content is None:
            raise ValueError("the command 'write' needs the argument 'content'")
        return self

    def to_operation(self) -> ops.Operation:
        match self.command:
            case "view":
                return ops.ViewMemory(self.path or None)
            case "write":
                return ops.WriteMemory(self.path or "", self.content or "")
            case "delete":
                return ops.DeleteMemory(self.path or "")

    render = render_as(result_formatting.format_memory)


class SkillTool(ToolClass):
    """Load a skill: detailed instructions for a specific kind of task."""

    naming = ToolMetadata(
        "skill", partial(ops.LoadSkill, delivery="result"), aliases=("load_skill", "use_skill"), needs="skills"
    )
    example = {"name": "release"}
    name: Annotated[str, Parameter("Skill name", "skill_name", "skill", "title")]

    render = render_as(attrgetter("text"))
