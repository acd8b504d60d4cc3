"""Define the plan of an operation, which exists before the operation is performed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from adapter.tools.operations import Outcome
from adapter.tools.operations.permissions import FileDraft


@dataclass(frozen=True, slots=True)
class Plan:
    """A planned operation. ``commit`` performs it and may raise ToolError.

    ``paths``: affected files that the operation does not name. ``subject``: name of the skill or host that rules apply
    to. ``diffs``: one diff per edit if there are several files. ``draft``: the new content of a single text file.
    ``edited(text)`` returns the plan with ``text`` instead of the draft. ``state``: the identity of each file that the
    operation uses without showing its content: entries of a folder, programs, skills.
    """

    summary: str
    commit: Callable[[], Outcome]
    diff: str = ""
    paths: tuple[str, ...] = ()
    subject: str = ""
    diffs: tuple[str, ...] = ()
    draft: FileDraft | None = None
    edited: Callable[[str], Plan] | None = None
    state: Mapping[str, str] = field(default_factory=dict)
