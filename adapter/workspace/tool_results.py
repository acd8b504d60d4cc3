"""Convert the outcome or error of a call to a tool result for the model."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace

from adapter.core.errors import DeniedError, ToolError
from adapter.core.events import Json, ToolResult
from adapter.core.json.strict import replace_surrogates
from adapter.core.text.truncate import truncate, with_notes
from adapter.tools import operations as ops
from adapter.tools.call_validation import MatchedCall
from adapter.tools.tool import ValidatedCall
from adapter.workspace.changes.operation_plan import Plan
from adapter.workspace.files.media import describe_media

CHANGED_BY_USER = "The user changed this before it was applied. What was done:"
"""Heading above the diff of a change edited by the user during approval."""


def build_tool_result(
    invocation: MatchedCall, call: ValidatedCall, outcome: ops.Outcome, suffix: str = ""
) -> ToolResult:
    """Build the result of a successful call, with ``suffix`` appended to its text."""
    text, data = _render_media(outcome) if isinstance(outcome, ops.Media) else call.render(outcome)
    notes, tool = (*invocation.left_out, *call.list_notes(), *outcome.notes), invocation.tool
    content, diff = with_notes(text + suffix, notes, max_lines=tool.max_lines), _render_diff(outcome)
    result = ToolResult(tool.name, True, content, data=data, diff=diff, notes=(*invocation.notes, *notes))
    message, images = _build_user_message(outcome), _encode_images(outcome)
    return replace(result, user_message=message, images=images, ends=isinstance(outcome, ops.TaskFinished))


def make_encodable(result: ToolResult) -> ToolResult:
    """Replace lone surrogates, from calls, file names and functions, with U+FFFD, so that the result can be encoded."""
    fields = ("name", "content", "error", "data", "diff", "user_message", "notes")
    changes = {name: replace_surrogates(value) for name in fields if (value := getattr(result, name))}
    is_same = all(getattr(result, name) == value for name, value in changes.items())
    return result if is_same else replace(result, **changes)


def build_error_result(name: str, error: ToolError) -> ToolResult:
    result = ToolResult.from_error(name, error)
    return replace(result, content=truncate(result.content), denied=isinstance(error, DeniedError))


def describe_user_change(planned: Plan) -> str:
    """Return the text that tells the model about the user's edit, with the diff of the edited change."""
    return f"\n\n{CHANGED_BY_USER}\n{planned.diff}"


def _render_diff(outcome: ops.Outcome) -> str:
    if isinstance(outcome, ops.BatchResults):
        return "".join(result.diff for result in outcome.results)
    return outcome.diff if isinstance(outcome, ops.FileWritten | ops.FilePatched | ops.FilesPatched) else ""


def _render_media(media: ops.Media) -> tuple[str, Json]:
    """Return a description of a media file, and the file as JSON data."""
    text = f"{media.path}: {describe_media(media.mime, len(media.data), media.data)}, attached."
    return text, {"path": media.path, "kind": media.kind, "mime": media.mime, "data": _encode_base64(media)}


def _encode_base64(media: ops.Media) -> str:
    return b64encode(media.data).decode("ascii")


def _encode_images(outcome: ops.Outcome) -> tuple[str, ...]:
    match outcome:
        case ops.BatchResults(results=results):
            return tuple(image for result in results for image in result.images)
        case ops.Media(kind="image", mime=mime):
            return (f"data:{mime};base64,{_encode_base64(outcome)}",)
        case _:
            return ()


def _build_user_message(outcome: ops.Outcome) -> str:
    if isinstance(outcome, ops.BatchResults):
        return "\n\n".join(result.user_message for result in outcome.results if result.user_message)
    return outcome.text if isinstance(outcome, ops.SkillLoaded) and outcome.delivery == "message" else ""
