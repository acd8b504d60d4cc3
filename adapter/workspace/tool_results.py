"""What the model is told of a call: the outcome of an operation, or why there is none, as a tool result."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from typing import Any

from adapter.core.errors import DeniedError, ToolError
from adapter.core.events import Json, ToolResult
from adapter.core.text.display_escaping import replace_lone_surrogates
from adapter.core.text.truncate import truncate, with_notes
from adapter.tools.call_resolution import ResolvedCall
from adapter.tools.operations import (
    BatchResults,
    FilePatched,
    FilesPatched,
    FileWritten,
    Media,
    Outcome,
    SkillLoaded,
    TaskFinished,
)
from adapter.tools.tool import ValidatedCall
from adapter.workspace.changes.plan import Plan
from adapter.workspace.files.media import described

CHANGED_BY_USER = "The user changed this before it was applied. What was done:"
"""What the model is told above the diff of a change that was edited when it was asked about."""


def tool_result_for(invocation: ResolvedCall, call: ValidatedCall, outcome: Outcome, told: str = "") -> ToolResult:
    """What the model and the host are told of a call that was done. ``told``: what stands below its text."""
    text, data = _media_shown(outcome) if isinstance(outcome, Media) else call.render(outcome)
    notes = (*invocation.left_out, *call.notes(), *outcome.notes)
    return ToolResult(
        name=invocation.tool.name,
        ok=True,
        content=with_notes(text + told, notes, max_lines=invocation.tool.max_lines),
        data=data,
        diff=_diff(outcome),
        notes=(*invocation.notes, *notes),
        user_message=_user_message(outcome),
        images=_images(outcome),
        ends=isinstance(outcome, TaskFinished),
    )


def encodable_result(result: ToolResult) -> ToolResult:
    """``result`` as it can be written anywhere: what is no text (a lone surrogate, from a call, a file's name or a
    function) is replaced by U+FFFD. The one place for this: every result of a workspace comes through here."""

    def changed(value: Any) -> Any:
        match value:
            case str():
                return replace_lone_surrogates(value)
            case list():
                return [changed(item) for item in value]
            case tuple():
                return tuple(map(changed, value))
            case dict():
                return {changed(key) if isinstance(key, str) else key: changed(item) for key, item in value.items()}
        return value

    fields = ("name", "content", "error", "data", "diff", "user_message")
    found = {name: changed(value) for name in fields if (value := getattr(result, name))}
    notes = tuple(map(replace_lone_surrogates, result.notes))
    if notes == result.notes and all(getattr(result, name) == value for name, value in found.items()):
        return result
    return replace(result, notes=notes, **found)


def error_result(name: str, error: ToolError) -> ToolResult:
    denied = isinstance(error, DeniedError)
    return ToolResult(name, ok=False, content=truncate(f"tool_error: {error}"), error=str(error), denied=denied)


def changed_by_user(planned: Plan) -> str:
    """What is told of a change that was edited when it was asked about."""
    return f"\n\n{CHANGED_BY_USER}\n{planned.diff}"


def _diff(outcome: Outcome) -> str:
    if isinstance(outcome, BatchResults):
        return "".join(result.diff for result in outcome.results)
    return outcome.diff if isinstance(outcome, FileWritten | FilePatched | FilesPatched) else ""


def _media_shown(media: Media) -> tuple[str, Json]:
    """What stands for a file in the text, and the file itself."""
    text = f"{media.path}: {described(media.mime, len(media.data), media.data)}, attached."
    return text, {"path": media.path, "kind": media.kind, "mime": media.mime, "data": _base64(media)}


def _base64(media: Media) -> str:
    return b64encode(media.data).decode("ascii")


def _images(outcome: Outcome) -> tuple[str, ...]:
    match outcome:
        case BatchResults(results=results):
            return tuple(image for result in results for image in result.images)
        case Media(kind="image", mime=mime):
            return (f"data:{mime};base64,{_base64(outcome)}",)
        case _:
            return ()


def _user_message(outcome: Outcome) -> str:
    if isinstance(outcome, BatchResults):
        return "\n\n".join(result.user_message for result in outcome.results if result.user_message)
    return outcome.text if isinstance(outcome, SkillLoaded) and outcome.delivery == "message" else ""
