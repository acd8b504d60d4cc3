"""An outline as text: fixed sections, each item with its lines.

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
from adapter.outline.imports import merge
from adapter.tools.operations import FileOutline, OutlineItem, Section

HEADERS: dict[Section, str] = {
    "imports": "imports",
    "mods": "mod",
    "consts": "consts",
    "types": "types",
    "traits": "traits",
    "impls": "impls",
    "fns": "fns",
    "classes": "classes",
    "macros": "macros",
    "tests": "tests",
}
"""In the order in which the sections stand."""
RANGES_ONLY: frozenset[Section] = frozenset({"imports", "tests"})

MAX_VALUES = 8
"""Fields shown of one item; their types are rarely what is looked for, methods are all shown. Of
constants beyond as many in a section only the names are shown."""
WIDTH = 120
NEAR_LINES = 5
"""Fields, constants and mere names share a line, and its range, when no more than so many lines lie between them."""


def format_outline(outline: FileOutline) -> str:
    """The outline as a model reads it; a file without declarations says so."""
    parts = [f"module doc: {_range(*outline.module_doc)}"] if outline.module_doc else []
    parts += [
        "\n".join(_section(section, items, outline))
        for section in HEADERS
        if (items := [item for item in outline.items if item.section == section])
    ]
    if not parts:
        parts = [
            f"({outline.path} declares nothing; it has {pluralize(outline.total_lines, 'line')} of {outline.language})"
        ]
    return "\n\n".join([*parts, *(f"(note: {note})" for note in outline.notes)])


def _section(section: Section, items: Sequence[OutlineItem], outline: FileOutline) -> Iterator[str]:
    header = f"{HEADERS[section]}:"
    if section in RANGES_ONLY:
        header += f" {_range(items[0].start_line, max(item.end_line for item in items))}"
    yield header
    if section == "imports":
        yield from _wrapped(merge(outline.imports, outline.separator), "  ")
    elif section != "tests":
        yield from _listed(items, "  ")


def _listed(items: Iterable[OutlineItem], indent: str) -> Iterator[str]:
    """The items, one a line, with their members; values and mere names that stand close together share lines."""
    values = 0
    run: list[tuple[str, OutlineItem]] = []
    for item in items:
        is_value = item.section in ("fields", "consts") and not item.members
        values += is_value
        is_beyond = is_value and values > MAX_VALUES
        is_hidden = is_beyond and item.section == "fields"
        is_alone = not is_value and (bool(item.members) or item.text != _only_name(item))
        if run and (is_hidden or is_alone or item.start_line > run[-1][1].end_line + NEAR_LINES):
            yield from _shared(run, indent)
            run = []
        if is_hidden:
            if values == MAX_VALUES + 1:
                yield f"{indent}[truncated]"
        elif is_alone:
            yield f"{indent}{item.text} {_range(item.start_line, item.end_line)}"
            yield from _listed(item.members, indent + "  ")
        else:
            run.append(((is_beyond and _only_name(item)) or item.text, item))
    yield from _shared(run, indent)


def _only_name(item: OutlineItem) -> str | None:
    return item.names[0].text if len(item.names) == 1 else None


def _shared(run: Sequence[tuple[str, OutlineItem]], indent: str) -> Iterator[str]:
    """As many on a line as there is room for, with the range of the lines they stand in."""
    separator = ", " if all(text == _only_name(item) for text, item in run) else "; "
    line: list[tuple[str, OutlineItem]] = []
    for text, item in run:
        if line and len(indent) + sum(len(each) + 2 for each, _ in line) + len(text) > WIDTH:
            yield _shared_line(line, indent, separator)
            line = []
        line.append((text, item))
    if line:
        yield _shared_line(line, indent, separator)


def _shared_line(line: Sequence[tuple[str, OutlineItem]], indent: str, separator: str) -> str:
    lines = _range(line[0][1].start_line, line[-1][1].end_line)
    return f"{indent}{separator.join(text for text, _ in line)} {lines}"


def _wrapped(words: Sequence[str], indent: str) -> Iterator[str]:
    """``words`` joined by commas, in lines of at most `WIDTH` where the words allow it."""
    line = ""
    for word in words:
        if line and len(indent) + len(line) + 2 + len(word) > WIDTH:
            yield f"{indent}{line},"
            line = word
        else:
            line = f"{line}, {word}" if line else word
    if line:
        yield indent + line


def _range(first: int, last: int) -> str:
    return f"[{first}]" if first == last else f"[{first}-{last}]"
