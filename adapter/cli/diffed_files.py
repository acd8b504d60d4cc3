"""Split the diff of a run into its files and places."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True, slots=True)
class DiffedFile:
    """The lines that a run removed from a file and added to it: in total, and for each place."""

    path: str
    is_new: bool
    removed: tuple[str, ...]
    added: tuple[str, ...]
    places: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """The old and the new text of each changed line, or of each place whose number of lines changed."""
        for removed, added in self.places:
            is_paired = len(removed) == len(added)
            yield from zip(removed, added, strict=True) if is_paired else [("\n".join(removed), "\n".join(added))]


def parse_diff(diff: str) -> list[DiffedFile]:
    """Return the changes in a unified diff, in its order."""
    changes = []
    # A removed line "-- x" and an added line "++ y" look like a header, but no hunk follows them. Only "\n" ends lines.
    parts = re.split(r"(?m)^--- (?:a/.*|/dev/null)\n\+\+\+ (?=(?:b/.*|/dev/null)\n@@ )", diff)
    for part in parts[1:]:
        path, *lines = (line.removesuffix("\r") for line in part.split("\n"))
        groups = ([*group] for _, group in groupby(lines, lambda line: line.startswith(("-", "+"))))
        places = tuple((_select_lines(group, "-"), _select_lines(group, "+")) for group in groups)
        removed, added = _select_lines(lines, "-"), _select_lines(lines, "+")
        is_new = lines[0].startswith("@@ -0,0 ")
        changes.append(DiffedFile(path.removeprefix("b/"), is_new, removed, added, places))
    return changes


def _select_lines(lines: Sequence[str], sign: str) -> tuple[str, ...]:
    return tuple(line[1:] for line in lines if line.startswith(sign))
