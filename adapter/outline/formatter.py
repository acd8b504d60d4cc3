"""Format an outline as text: fixed sections, in which each item is followed by its lines.

::

    module doc: [1-4]
    imports: [6-9]
      os, sys, collections.abc.{Callable, Iterator}

    classes:
      class Parser(Base) [12-80]
        limit: int [15]
        def feed(self, text: str) -> None [17-30]

    fns:
      def main() -> int [83-90]

``[n]`` is one line, ``[a-b]`` a range, both 1-based.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from adapter.core.text.plurals import pluralize
from adapter.outline.import_merging import merge_imports
from adapter.tools.operations import FileOutline, OutlineItem, Section

SECTIONS: tuple[Section, ...] = (
    "imports", "mods", "consts", "types", "traits", "impls", "fns", "classes", "macros", "tests"
)  # fmt: skip
"""Sections in output order."""
RANGES_ONLY: frozenset[Section] = frozenset({"imports", "tests"})
"""Sections whose header has one line range for all items."""

MAX_VALUES = 8
"""Maximum number of fields that are listed for a class, and of constants that are listed with their values."""
WIDTH = 120
NEAR_LINES = 5
"""Maximum distance, in lines, between fields, constants or names that share an output line."""


def format_outline(outline: FileOutline) -> str:
    """Format an outline as text for a model."""
    parts = [f"module doc: {_format_range(*outline.module_doc)}"] if outline.module_doc else []
    parts += [
        "\n".join(_format_section(section, items, outline))
        for section in SECTIONS
        if (items := [item for item in outline.items if item.section == section])
    ]
    if not parts:
        parts = [
            f"({outline.path} declares nothing; it has {pluralize(outline.total_lines, 'line')} of {outline.language})"
        ]
    return "\n\n".join([*parts, *(f"(note: {note})" for note in outline.notes)])


def _format_section(section: Section, items: Sequence[OutlineItem], outline: FileOutline) -> Iterator[str]:
    header = "mod:" if section == "mods" else f"{section}:"
    if section in RANGES_ONLY:
        header += f" {_format_range(items[0].start_line, max(item.end_line for item in items))}"
    yield header
    if section == "imports":
        yield from _wrap_words(merge_imports(outline.imports, outline.separator))
    elif section != "tests":
        yield from _format_items(items, "  ")


def _format_items(items: Iterable[OutlineItem], indent: str) -> Iterator[str]:
    """Format one item per line, with its members. Short fields, constants and names that are close together share a
    line."""
    values = 0
    run: list[tuple[str, OutlineItem]] = []
    for item in items:
        is_value = item.section in ("fields", "consts") and not item.members
        values += is_value
        is_over_limit = is_value and values > MAX_VALUES
        is_hidden = is_over_limit and item.section == "fields"
        is_alone = not is_value and (bool(item.members) or item.text != _find_single_name(item))
        if run and (is_hidden or is_alone or item.start_line > run[-1][1].end_line + NEAR_LINES):
            yield from _format_run(run, indent)
            run = []
        if is_hidden:
            if values == MAX_VALUES + 1:
                yield f"{indent}[truncated]"
        elif is_alone:
            yield f"{indent}{item.text} {_format_range(item.start_line, item.end_line)}"
            yield from _format_items(item.members, indent + "  ")
        else:
            run.append(((is_over_limit and _find_single_name(item)) or item.text, item))
    yield from _format_run(run, indent)


def _find_single_name(item: OutlineItem) -> str | None:
    return item.names[0].text if len(item.names) == 1 else None


def _format_run(run: Sequence[tuple[str, OutlineItem]], indent: str) -> Iterator[str]:
    """Join the texts of ``run`` into output lines of at most `WIDTH` characters, each followed by its items' line
    range."""
    separator = ", " if all(text == _find_single_name(item) for text, item in run) else "; "
    line: list[tuple[str, OutlineItem]] = []
    for text, item in run:
        if line and len(indent) + sum(len(shared_text) + 2 for shared_text, _ in line) + len(text) > WIDTH:
            yield _format_shared_line(line, indent, separator)
            line = []
        line.append((text, item))
    if line:
        yield _format_shared_line(line, indent, separator)


def _format_shared_line(line: Sequence[tuple[str, OutlineItem]], indent: str, separator: str) -> str:
    lines = _format_range(line[0][1].start_line, line[-1][1].end_line)
    return f"{indent}{separator.join(text for text, _ in line)} {lines}"


def _wrap_words(words: Sequence[str]) -> Iterator[str]:
    """Join ``words`` with commas into indented lines of at most `WIDTH` characters. A longer word is on a separate
    line."""
    line = ""
    for word in words:
        if line and len(line) + 2 + len(word) > WIDTH:
            yield f"{line},"
            line = f"  {word}"
        else:
            line = f"{line}, {word}" if line else f"  {word}"
    if line:
        yield line


def _format_range(first: int, last: int) -> str:
    return f"[{first}]" if first == last else f"[{first}-{last}]"
