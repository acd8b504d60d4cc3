"""ProxyAI's tools for questions, to-do lists, skills, subagents and the end of a run."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from adapter.core.events import Json
from adapter.dialects import result_formatting
from adapter.dialects.proxyai.error_fields import make_error_renderer
from adapter.dialects.tool_class import Parameter, PathText, Rendered, ToolClass, ToolMetadata, render_as
from adapter.tools import operations as ops
from adapter.tools.argument_synonyms import WORKING_DIRECTORY
from adapter.tools.operations import TodoStatus, parse_todo_status

TITLE_WORDS = 4


class OptionArguments(BaseModel):
    label: Annotated[str, Parameter("The answer")]
    description: Annotated[str, Parameter("Its meaning")] = ""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Json) -> Json:
        return {"label": value} if isinstance(value, str) else value


class QuestionArguments(BaseModel):
    header: Annotated[str, Parameter("Short name of the question, at most 12 characters")] = ""
    question: Annotated[str, Parameter("The question")]
    options: Annotated[list[OptionArguments], Parameter("Answers to choose from")] = Field(default_factory=list)
    multiSelect: Annotated[bool, Parameter("Whether several may be chosen")] = False


class AskUserQuestion(ToolClass):
    """Ask the user one to four questions, with answers to choose from."""

    naming = ToolMetadata(
        "AskUserQuestion",
        aliases=("ask_user", "question", "ask"),
        effect="state",
        needs="questions",
        failure=make_error_renderer("message"),
    )
    example = {
        "questions": [
            {
                "header": "Database",
                "question": "Which database?",
                "options": [{"label": "SQLite"}, {"label": "Postgres"}],
                "multiSelect": False,
            }
        ]
    }
    questions: Annotated[list[QuestionArguments], Parameter("One to four questions")]
    answers: Annotated[dict[str, str | list[str]] | None, Parameter("Known answers, by header")] = None

    def to_operation(self) -> ops.Operation:
        questions = tuple(
            ops.Question(
                one.question, one.header, tuple(ops.Option(**dict(each)) for each in one.options), one.multiSelect
            )
            for one in self.questions
        )
        known = {
            key: (answer,) if isinstance(answer, str) else tuple(answer) for key, answer in (self.answers or {}).items()
        }
        return ops.AskUser(questions, known)

    def render(self, answered: ops.UserAnswers) -> Rendered:
        pairs = list(zip(answered.questions, answered.chosen, strict=True))
        fields = {one.key: list(chosen) if one.multiple else ", ".join(chosen) for one, chosen in pairs}
        return "\n".join(f"{one.key}: {', '.join(chosen)}" for one, chosen in pairs), {"answers": fields}


class TodoArguments(BaseModel):
    content: Annotated[str, Parameter("The task")]
    status: Annotated[
        TodoStatus,
        Parameter("pending, in_progress or completed"),
        BeforeValidator(lambda value: parse_todo_status(value) if isinstance(value, str) else value),
        Field(json_schema_extra={"enum": ["pending", "in_progress", "completed"]}),
    ] = "pending"
    activeForm: Annotated[str, Parameter("Label while it is in progress")] = ""


class ProxyAITodoWrite(ToolClass):
    """Replace the todo list; its title has at most 4 words."""

    naming = ToolMetadata("TodoWrite", aliases=("TodoWriteTool", "todo_write", "update_todos"), effect="state")
    example = {
        "title": "Fix the parser",
        "todos": [
            {"content": "Write a test", "status": "completed", "activeForm": "Writing a test"},
            {"content": "Fix it", "status": "in_progress", "activeForm": "Fixing it"},
        ],
    }
    title: Annotated[str, Parameter("Title, at most 4 words", "name", is_required=True)] = "Todo"
    todos: Annotated[list[TodoArguments], Parameter("The whole list", "items", "tasks")]

    def to_operation(self) -> ops.Operation:
        todos = tuple(ops.Todo(one.content, one.status, active_form=one.activeForm) for one in self.todos)
        return ops.SetTodos(todos, " ".join(self.title.split()[:TITLE_WORDS]))

    def render(self, todos: ops.TodoList) -> Rendered:
        head = f"{todos.title}: {todos.count('completed')} of {len(todos.todos)} done"
        lines = [
            f"[{result_formatting.TODO_MARKS[todo.status]}] "
            + (todo.active_form if todo.status == "in_progress" and todo.active_form else todo.content)
            for todo in todos.todos
        ]
        return "\n".join([head, *lines]), None

    def list_notes(self) -> tuple[str, ...]:
        if len(self.title.split()) <= TITLE_WORDS:
            return ()
        return (f"the title was truncated to {TITLE_WORDS} words",)


class LoadSkillTool(ToolClass):
    """Load a skill. Its instructions follow as a user message. The user is asked first."""

    naming = ToolMetadata(
        "LoadSkill",
        partial(ops.LoadSkill, delivery="message"),
        aliases=("skill", "use_skill"),
        needs="skills",
        failure=make_error_renderer("message"),
    )
    example = {"skill_name": "Release"}
    skill_name: Annotated[str, Parameter("Title of the skill, from the list", "name", "title")]

    def render(self, loaded: ops.SkillLoaded) -> Rendered:
        skill = loaded.skill
        fields = {"title": skill.title, "description": skill.description, "queued": True}
        return f"The skill {skill.title} was loaded; its instructions follow.", fields


class ProxyAITask(ToolClass):
    """Let a sub-agent do a task; it sees only the prompt, and returns only its report."""

    naming = ToolMetadata("Task", aliases=("Agent", "delegate", "run_agent"), effect="state", needs="agents")
    example = {
        "description": "Find the parser",
        "prompt": "Find where dates are parsed and name the file and function.",
        "subagent_type": "research",
    }
    description: Annotated[str, Parameter("Short label, shown to the user", is_required=True)] = ""
    prompt: Annotated[str, Parameter("Everything that the sub-agent needs to know", "task", "instructions")]
    subagent_type: Annotated[str, Parameter("Kind of sub-agent", "agent_type", "agentType")]
    model: Annotated[str | None, Parameter("A different model")] = None
    project_path: Annotated[PathText | None, Parameter("Folder to work in", "projectPath", *WORKING_DIRECTORY)] = None

    def to_operation(self) -> ops.Operation:
        label = self.description or " ".join(self.prompt.split()[:5])
        return ops.RunSubagent(self.prompt, self.subagent_type, label, self.model, self.project_path)

    def render(self, report: ops.AgentReport) -> Rendered:
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
    """End the run, when the task is done or cannot be done."""

    naming = ToolMetadata("Exit", ops.Finish, aliases=("finish", "done", "end"))

    render = render_as(lambda _: "")
