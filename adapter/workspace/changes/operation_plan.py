"""Define the plan of an operation, which exists before the operation is performed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields

from adapter.core.text.display_escaping import escape_for_display
from adapter.tools.operations import Operation, Outcome
from adapter.tools.operations.permissions import FileDraft


@dataclass(frozen=True, slots=True)
class Plan:
    """A planned operation. ``commit`` performs it and may raise ToolError."""

    summary: str
    commit: Callable[[], Outcome]
    diff: str = ""
    paths: tuple[str, ...] = ()
    """Affected files that the operation does not name."""
    subject: str = ""
    """Name of the skill or host that rules apply to."""
    diffs: tuple[str, ...] = ()
    """One diff per edit if there are several files."""
    draft: FileDraft | None = None
    """The new content of a single text file."""
    edited: Callable[[str], Plan] | None = None
    """Function that returns this plan with another text in place of the draft."""
    state: Mapping[str, str] = field(default_factory=dict)
    """Identities, by path, of files that the operation uses but the approval does not show, such as programs. If such a
    file changes during the approval, the approval no longer applies."""


def summarize(template: str, operation: Operation) -> str:
    """Return the summary of an operation: ``template``, filled in with the operation's fields. Their hidden characters
    are escaped."""
    values = {each.name: getattr(operation, each.name) for each in fields(operation)}
    return template.format(
        **{name: escape_for_display(value) if isinstance(value, str) else value for name, value in values.items()}
    )
