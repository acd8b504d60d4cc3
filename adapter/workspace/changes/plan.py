"""What an operation would do, before it does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from adapter.tools.operations import Outcome
from adapter.tools.operations.permissions import FileDraft


@dataclass(frozen=True, slots=True)
class Plan:
    """``commit`` does it and may raise ToolError; until then nothing has changed.

    ``paths``: files that it is about and that the operation does not name.
    ``subject``: the skill or host that it is about. ``diffs``: of several files, one for each edit.
    ``draft``: of one file of text, what it would hold; ``edited`` is then the plan with another text in its place.
    """

    summary: str
    commit: Callable[[], Outcome]
    diff: str = ""
    paths: tuple[str, ...] = ()
    subject: str = ""
    diffs: tuple[str, ...] = ()
    draft: FileDraft | None = None
    edited: Callable[[str], Plan] | None = None
