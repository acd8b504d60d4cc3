"""Draw real edits of real source files, and write them down with the slips that models make.

A case is a text, patches and the right result, or None if only a rejection is right. Everything is drawn from one
seeded generator.
"""

from __future__ import annotations

import html
import keyword
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Literal, TypeAlias

from adapter.core.events import Json
from benchmarks.real_files import language_of

Patches: TypeAlias = list[dict[str, Json]]


@dataclass(frozen=True)
class Case:
    kind: str
    text: str
    patches: Patches
    expected: str | None
    source: str = ""
    also: tuple[str, ...] = ()
    """Other acceptable results, if the case is ambiguous; a rejection is then also right."""


@dataclass(frozen=True)
class Edit:
    """``lines[start:stop]`` become ``added``; the model shows ``before`` and ``after`` lines around them."""

    source: str
    lines: tuple[str, ...]
    start: int
    stop: int
    added: tuple[str, ...]
    before: int
    after: int
    shown: dict[int, str] = field(default_factory=dict)

    @property
    def first(self) -> int:
        return self.start - self.before

    @property
    def context(self) -> list[int]:
        return [*range(self.first, self.start), *range(self.stop, self.stop + self.after)]

    @property
    def removed(self) -> list[str]:
        return list(self.lines[self.start : self.stop])

    @property
    def old(self) -> list[str]:
        return list(self.lines[self.first : self.stop + self.after])

    @property
    def new(self) -> list[str]:
        return [
            *self.lines[self.first : self.start],
            *self.added,
            *self.lines[self.stop : self.stop + self.after],
        ]

    @property
    def result(self) -> list[str]:
        return [*self.lines[: self.start], *self.added, *self.lines[self.stop :]]


def text_of(file: Path) -> str:
    return file.read_text("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")


# ------------------------------------------------------------------------ true edits

NAME = re.compile(r"(?<![\w\"'])[A-Za-z_]\w{3,}")
_NUMBER = re.compile(r"(?<![\w.])\d{1,9}(?![\w.])", re.ASCII)
_OPPOSITE = {"==": "!=", "!=": "==", "+=": "-=", "-=": "+=", " < ": " <= ", " > ": " >= ", "true": "false"}
_OPPOSITE |= {"True": "False", " and ": " or ", "&&": "||", " + ": " - ", "false": "true", "False": "True"}
_OPERATOR = re.compile("|".join(map(re.escape, _OPPOSITE)))


def make_edit(random: Random, file: Path) -> Edit | None:
    lines = tuple(text_of(file).split("\n"))
    if not 30 <= len(lines) <= 1500:
        return None
    for _ in range(30):
        start = random.randrange(6, len(lines) - 8)
        if not lines[start].strip() or not lines[start - 1].strip():
            continue
        sort = random.choice(["change", "change", "insert", "delete"])
        size = random.choice([1, 1, 2, 3]) if sort != "insert" else 0
        removed = lines[start : start + size]
        if any(not line.strip() for line in removed):
            continue
        added = added_lines(random, sort, lines, start, removed)
        edit = Edit(
            str(file),
            lines,
            start,
            start + size,
            tuple(added),
            random.randint(1, 4),
            random.randint(1, 4),
        )
        if added != list(removed) and "\n".join(lines).count("\n".join(edit.old)) == 1 and is_telling(edit):
            return edit
    return None


def is_telling(edit: Edit) -> bool:
    return sum(len(line.strip()) > 8 for line in edit.old) >= 2 and bool(edit.old[0].strip())


def added_lines(random: Random, sort: str, lines: Sequence[str], start: int, removed: Sequence[str]) -> list[str]:
    if sort == "delete":
        return []
    model = removed or [lines[start - 1]]
    added = [altered(random, line, lines) for line in model]
    if sort == "insert":
        added += [altered(random, lines[start - 1], lines)] * random.randint(0, 1)
    elif random.random() < 0.3:
        added.append(altered(random, added[-1], lines))
    return added


def altered(random: Random, line: str, lines: Sequence[str] = ()) -> str:
    names = [match for match in NAME.finditer(line) if not keyword.iskeyword(match[0])]
    numbers = list(_NUMBER.finditer(line))
    operators = list(_OPERATOR.finditer(line))
    sort = random.choice(["longer", "longer", "other", "number", "operator"])
    if sort == "number" and numbers:
        match = random.choice(numbers)
        return line[: match.start()] + str(int(match[0]) + random.choice([1, 2, 10])) + line[match.end() :]
    if sort == "operator" and operators:
        match = random.choice(operators)
        return line[: match.start()] + _OPPOSITE[match[0]] + line[match.end() :]
    if names:
        match = random.choice(names)
        others = NAME.findall(random.choice(lines)) if sort == "other" and lines else []
        other = random.choice(others) if others else random.choice(["new_", "other", "my"]) + match[0]
        if other != match[0]:
            return line[: match.start()] + other + line[match.end() :]
    return line + random.choice([" + extra", "  # changed", ", more"])


# ----------------------------------------------------------------------- corruptions


def case_of(edit: Edit, kind: str, old: Sequence[str], new: Sequence[str], **hints: int) -> Case:
    patch: dict[str, Json] = {"old_text": "\n".join(old), "new_text": "\n".join(new), **hints}
    return Case(kind, "\n".join(edit.lines), [patch], "\n".join(edit.result), edit.source)


def _mapped(edit: Edit, kind: str, change: Callable[[str], str]) -> Case:
    """Make the same slip on every line that the model writes."""
    return case_of(edit, kind, [change(line) for line in edit.old], [change(line) for line in edit.new])


def _in_context(edit: Edit, kind: str, line: int, written: Sequence[str]) -> Case:
    """Make the same slip on one context line, in the old and the new text."""
    old, new = list(edit.old), list(edit.new)
    at = line - edit.first
    old[at : at + 1] = written
    if line >= edit.start:
        at += len(new) - len(edit.old)
    new[at : at + 1] = written
    return case_of(edit, kind, old, new)


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def exact(_: Random, edit: Edit) -> Case:
    return case_of(edit, "exact", edit.old, edit.new)


def part_of_line(random: Random, edit: Edit) -> Case | None:
    text = "\n".join(edit.lines)
    for match in random.sample(found := list(NAME.finditer(edit.lines[edit.start])), len(found)):
        part = edit.lines[edit.start][match.start() :]
        if text.count(part) == 1 and len(part) > 6:
            return Case(
                "part of a line",
                text,
                [{"old_text": part, "new_text": "other" + part}],
                text.replace(part, "other" + part),
            )
    return None


def replace_all(random: Random, edit: Edit) -> Case | None:
    text = "\n".join(edit.lines)
    names = [match[0] for line in edit.old for match in NAME.finditer(line) if text.count(match[0]) > 1]
    if not names:
        return None
    name = random.choice(names)
    patch: dict[str, Json] = {"old_text": name, "new_text": name + "_x", "replace_all": True}
    return Case("replace all", text, [patch], text.replace(name, name + "_x"))


def bare_lines(_: Random, edit: Edit) -> Case | None:
    """The changed lines alone, without context. Deleting lines also deletes their line ends."""
    if not edit.removed or "\n".join(edit.lines).count("\n".join(edit.removed)) != 1:
        return None
    if edit.added == ("",):
        return None  # no text, as for a deletion
    edit = replace(edit, before=0, after=0)
    return case_of(edit, "no context", edit.old, edit.new)


def wrong_hint(random: Random, edit: Edit) -> Case:
    return case_of(edit, "wrong hint", edit.old, edit.new, start_line=random.randint(1, len(edit.lines)))


def dedented(_: Random, edit: Edit) -> Case | None:
    common = min(len(indent_of(line)) for line in edit.old + edit.new if line.strip())
    if len({line[:1] for line in edit.old + edit.new if indent_of(line)}) > 1:
        return None  # tabs and spaces are mixed
    return _mapped(edit, "indent zero", lambda line: line[common:]) if common else None


def indented_less(_: Random, edit: Edit) -> Case | None:
    common = min(len(indent_of(line)) for line in edit.old + edit.new if line.strip())
    return _mapped(edit, "indent less", lambda line: line[2:]) if common >= 4 else None


def indented_more(_: Random, edit: Edit) -> Case:
    return _mapped(edit, "indent more", lambda line: "    " + line if line.strip() else line)


def first_line_bare(_: Random, edit: Edit) -> Case | None:
    if not indent_of(edit.old[0]) or edit.old[0] != edit.new[0]:
        return None
    old, new = [edit.old[0].lstrip(), *edit.old[1:]], [edit.new[0].lstrip(), *edit.new[1:]]
    return case_of(edit, "first line bare", old, new)


def tabs_by_model(_: Random, edit: Edit) -> Case | None:
    def tabbed(line: str) -> str:
        width = len(indent_of(line))
        return "\t" * (width // 4) + " " * (width % 4) + line[width:]

    if "\t" in "".join(edit.old + edit.new) or not any(line.startswith("    ") for line in edit.old):
        return None
    return _mapped(edit, "tabs by model", tabbed)


def tabs_in_file(_: Random, edit: Edit) -> Case | None:
    def tabbed(line: str) -> str:
        width = len(indent_of(line))
        return "\t" * (width // 4) + " " * (width % 4) + line[width:]

    if "\t" in "".join((*edit.lines, *edit.added)) or not any(line.startswith("    ") for line in edit.old):
        return None
    case = case_of(edit, "tabs in file", edit.old, edit.new)
    text, expected = ("\n".join(map(tabbed, lines)) for lines in (edit.lines, edit.result))
    return replace(case, text=text, expected=expected)


def two_for_four(_: Random, edit: Edit) -> Case | None:
    widths = {len(indent_of(line)) for line in edit.old + edit.new if line.strip()}
    is_seen = any(indent_of(line) for line in edit.old if line.strip())
    if not is_seen or any(width % 4 for width in widths):
        return None
    return _mapped(edit, "two for four", lambda line: line[len(indent_of(line)) // 2 :])


def trailing_in_file(random: Random, edit: Edit) -> Case | None:
    noise = {
        line: edit.lines[line] + random.choice([" ", "  ", "\t"]) for line in edit.context if edit.lines[line].strip()
    }
    lines = tuple(noise.get(number, line) for number, line in enumerate(edit.lines))
    noisy = replace(edit, lines=lines)
    return replace(case_of(noisy, "trailing in file", edit.old, edit.new))


def trailing_by_model(random: Random, edit: Edit) -> Case:
    noise = {line: line + random.choice(["", " ", "  "]) for line in {edit.lines[number] for number in edit.context}}
    return _mapped(edit, "trailing by model", lambda line: noise.get(line, line))


def inner_spaces(_: Random, edit: Edit) -> Case | None:
    targets = {edit.lines[line] for line in edit.context if re.search(r"\S [=+\-<>{(]", edit.lines[line])}
    if not targets:
        return None

    def spaced(line: str) -> str:
        return re.sub(r"(?<=\S) (?=[=+\-<>{(])", "  ", line) if line in targets else line

    return _mapped(edit, "inner spaces", spaced)


def _with_blank(edit: Edit) -> int | None:
    inner = [
        line for line in edit.context if line not in (edit.first, edit.start - 1, edit.stop, edit.stop + edit.after - 1)
    ]
    return next((line for line in inner if not edit.lines[line].strip()), None)


def blank_dropped(_: Random, edit: Edit) -> Case | None:
    line = _with_blank(edit)
    return None if line is None else _in_context(edit, "blank dropped", line, [])


def blank_added(random: Random, edit: Edit) -> Case | None:
    inner = [line for line in edit.context if line != edit.first]
    if not inner or not edit.before:
        return None
    line = random.choice(inner)
    return _in_context(edit, "blank added", line, ["", edit.lines[line]])


def blank_edges(_: Random, edit: Edit) -> Case:
    return case_of(edit, "blank edges", ["", *edit.old, "", ""], ["", *edit.new, "", ""])


_CURLY = str.maketrans({"'": "\u2019", '"': "\u201d", "-": "\u2013"})


def curly_by_model(_: Random, edit: Edit) -> Case | None:
    targets = {edit.lines[line] for line in edit.context}
    if not any(line.translate(_CURLY) != line for line in targets):
        return None
    return _mapped(edit, "curly by model", lambda line: line.translate(_CURLY) if line in targets else line)


def curly_in_file(_: Random, edit: Edit) -> Case | None:
    if not any(line.translate(_CURLY) != line for line in edit.old):
        return None
    curly = replace(edit, lines=tuple(line.translate(_CURLY) for line in edit.lines))
    if edit.removed and edit.added:  # where the model kept a line's characters, so does the result
        if len(edit.added) != len(edit.removed) or not all(map(_keeps_marks, edit.removed, edit.added)):
            return None
        curly = replace(curly, added=tuple(line.translate(_CURLY) for line in edit.added))
    return replace(case_of(curly, "curly in file", edit.old, edit.new))


def _keeps_marks(old: str, new: str) -> bool:
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    middles = old[head : len(old) - tail], new[head : len(new) - tail]
    kept = len("".join((old[:head] + old[len(old) - tail :]).split()))
    return all(middle.translate(_CURLY) == middle for middle in middles) and 3 * kept >= 2 * len("".join(old.split()))


_COMPOSED: tuple[Literal["NFC", "NFD"], Literal["NFC", "NFD"]] = ("NFC", "NFD")


def _common(left: str, right: str) -> int:
    return next(
        (at for at, pair in enumerate(zip(left, right, strict=False)) if pair[0] != pair[1]), min(len(left), len(right))
    )


def decomposed(random: Random, edit: Edit) -> Case | None:
    """Letters with accents, composed in the file and decomposed by the model, or the other way round."""
    line = random.choice(edit.context)
    here, there = random.choice((_COMPOSED, _COMPOSED[::-1]))
    accented = edit.lines[line].replace("e", "\u00e9", 1)
    if accented == edit.lines[line]:
        return None
    lines = [*edit.lines[:line], unicodedata.normalize(here, accented), *edit.lines[line + 1 :]]
    edit = replace(edit, lines=tuple(lines))
    return _in_context(edit, "composed letters", line, [unicodedata.normalize(there, accented)])


def nbsp_in_file(random: Random, edit: Edit) -> Case | None:
    line = random.choice(edit.context)
    if " " not in edit.lines[line].strip():
        return None
    head = indent_of(edit.lines[line])
    lines = list(edit.lines)
    lines[line] = head + edit.lines[line].strip().replace(" ", "\u00a0", 1)
    return case_of(replace(edit, lines=tuple(lines)), "nbsp in file", edit.old, edit.new)


def crlf_file(_: Random, edit: Edit) -> Case:
    case = case_of(edit, "crlf file", edit.old, edit.new)
    return replace(case, text="\r\n".join(edit.lines), expected="\r\n".join(edit.result))


def crlf_model(_: Random, edit: Edit) -> Case:
    case = case_of(edit, "crlf model", edit.old, edit.new)
    return replace(case, patches=[{key: str(value).replace("\n", "\r\n") for key, value in case.patches[0].items()}])


def byte_order_mark(_: Random, edit: Edit) -> Case:
    case = case_of(edit, "byte order mark", edit.old, edit.new)
    return replace(case, text="\ufeff" + case.text, expected=f"\ufeff{case.expected}")


def no_final_newline(_: Random, edit: Edit) -> Case | None:
    stop = edit.stop + edit.after
    short = replace(edit, lines=edit.lines[:stop])
    case = case_of(short, "no final newline", edit.old, edit.new)
    patch = {key: f"{value}\n" for key, value in case.patches[0].items()}
    return replace(case, patches=[patch]) if edit.lines[stop - 1].strip() else None


def newline_mismatch(random: Random, edit: Edit) -> Case | None:
    last = edit.stop + edit.after - 1
    if not edit.new or not edit.lines[last].strip() or not edit.lines[last + 1].strip():
        return None  # next to a blank line, the model may mean a blank line
    key = random.choice(["old_text", "new_text"])
    case = case_of(edit, "newline mismatch", edit.old, edit.new)
    return replace(case, patches=[{**case.patches[0], key: f"{case.patches[0][key]}\n"}])


def texts(case: Case, change: Callable[[str], str]) -> Case:
    return replace(case, patches=[{key: change(str(value)) for key, value in case.patches[0].items()}])


def shifted(text: str) -> str:
    """Indent ``text`` by one level."""
    return "\n".join("    " + line if line.strip() else line for line in text.split("\n"))


def escaped_newlines(_: Random, edit: Edit) -> Case | None:
    case = case_of(edit, "escaped newlines", edit.old, edit.new)
    if "\\" in "".join(edit.old + edit.new):
        return None
    return texts(case, lambda text: text.replace("\n", "\\n").replace("\t", "\\t"))


def escaped_all(_: Random, edit: Edit) -> Case:
    def escaped(text: str) -> str:
        for plain, spelled in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t")):
            text = text.replace(plain, spelled)
        return text

    return texts(case_of(edit, "escaped twice", edit.old, edit.new), escaped)


def escaped_tabs(_: Random, edit: Edit) -> Case | None:
    if "\\" in "".join(edit.old + edit.new) or not any("\t" in line for line in edit.old):
        return None
    return texts(case_of(edit, "escaped tabs", edit.old, edit.new), lambda text: text.replace("\t", "\\t"))


def escaped_quotes(_: Random, edit: Edit) -> Case | None:
    if '"' not in "".join(edit.old) or "\\" in "".join(edit.old + edit.new):
        return None
    return texts(case_of(edit, "escaped quotes", edit.old, edit.new), lambda text: text.replace('"', '\\"'))


def entities(_: Random, edit: Edit) -> Case | None:
    if not re.search("[<>&\"']", "".join(edit.old)) or "&" in "".join(edit.old):
        return None
    return texts(case_of(edit, "html entities", edit.old, edit.new), html.escape)


def _numbered(edit: Edit, kind: str, form: str) -> Case:
    first = edit.first + 1
    return case_of(
        edit,
        kind,
        [form.format(first + step, line) for step, line in enumerate(edit.old)],
        [form.format(first + step, line) for step, line in enumerate(edit.new)],
    )


def numbers_pipe(_: Random, edit: Edit) -> Case:
    return _numbered(edit, "numbers 12|", "{}| {}")


def numbers_colon(_: Random, edit: Edit) -> Case:
    return _numbered(edit, "numbers 12:", "{}: {}")


def numbers_cat(_: Random, edit: Edit) -> Case:
    return _numbered(edit, "numbers cat -n", "{:6}\t{}")


def numbers_old_only(_: Random, edit: Edit) -> Case:
    case = numbers_pipe(_, edit)
    return replace(case, kind="numbers in old", patches=[{**case.patches[0], "new_text": "\n".join(edit.new)}])


def fenced(_: Random, edit: Edit) -> Case:
    return texts(case_of(edit, "fences", edit.old, edit.new), lambda text: f"```python\n{text}\n```")


def diff_markers(_: Random, edit: Edit) -> Case | None:
    if not edit.removed or not edit.added:
        return None
    head = [" " + line for line in edit.lines[edit.first : edit.start]]
    tail = [" " + line for line in edit.lines[edit.stop : edit.stop + edit.after]]
    old = [*head, *("-" + line for line in edit.removed), *tail]
    new = [*head, *("+" + line for line in edit.added), *tail]
    return case_of(edit, "diff markers", old, new)


def _misspelt(random: Random, line: str) -> str | None:
    names = [match for match in NAME.finditer(line) if len(match[0]) >= 6]
    if not names:
        return None
    match = random.choice(names)
    at = match.start() + random.randint(1, len(match[0]) - 3)
    typed = line[:at] + line[at + 1] + line[at] + line[at + 2 :]
    return typed if typed != line else None


def typo_in_context(random: Random, edit: Edit) -> Case | None:
    line = random.choice(edit.context)
    typed = _misspelt(random, edit.lines[line])
    return None if typed is None else _in_context(edit, "typo in context", line, [typed])


def typo_in_removed(random: Random, edit: Edit) -> Case | None:
    if not edit.removed:
        return None
    typed = _misspelt(random, edit.removed[0])
    if typed is None:
        return None
    old = list(edit.old)
    old[edit.before] = typed
    return case_of(edit, "typo in removed", old, edit.new)


def quote_style(_: Random, edit: Edit) -> Case | None:
    lines = [line for line in edit.context if '"' in edit.lines[line] and "'" not in edit.lines[line]]
    return _in_context(edit, "quote style", lines[0], [edit.lines[lines[0]].replace('"', "'")]) if lines else None


def trailing_comma(_: Random, edit: Edit) -> Case | None:
    lines = [line for line in edit.context if edit.lines[line].rstrip().endswith((",", ";"))]
    return _in_context(edit, "trailing comma", lines[0], [edit.lines[lines[0]].rstrip()[:-1]]) if lines else None


_COMMENTS = {"python": "# {}", "yaml": "# {}", "toml": "# {}", "rb": "# {}", "markdown": "<!-- {} -->"}


def comment_of(edit: Edit, words: str) -> str:
    return _COMMENTS.get(language_of(edit.source), "// {}").format(words)


UNSEEN = "a comment that was not copied"


def comment_dropped(random: Random, edit: Edit) -> Case | None:
    """The file has a comment that the model left out, away from the change."""
    inner = [line for line in edit.context if line not in (edit.first, edit.stop)]
    if not inner:
        return None
    line = random.choice(inner)
    lines = list(edit.lines)
    lines.insert(line, indent_of(edit.lines[line]) + comment_of(edit, UNSEEN))
    shift = 1 if line <= edit.start - 1 else 0
    moved = replace(edit, lines=tuple(lines), start=edit.start + shift, stop=edit.stop + shift)
    return case_of(moved, "comment dropped", edit.old, edit.new)


def line_dropped(random: Random, edit: Edit) -> Case | None:
    inner = [
        line for line in edit.context if line not in (edit.first, edit.start - 1, edit.stop, edit.stop + edit.after - 1)
    ]
    inner = [line for line in inner if edit.lines[line].strip()]
    return _in_context(edit, "line dropped", random.choice(inner), []) if inner and len(edit.old) > 4 else None


def elided(random: Random, edit: Edit) -> Case | None:
    """Many context lines on one side of the change are replaced by ``...``."""
    size = random.randint(4, 40)
    first = edit.start - 2 - size
    if first < 1 or not all(edit.lines[line].strip() for line in (first, first - 1, edit.start - 1)):
        return None
    dots = indent_of(edit.lines[first + 1]) + random.choice(
        ["...", comment_of(edit, "..."), "// ... existing code ..."]
    )
    head = [*edit.lines[first - 1 : first + 1], dots, *edit.lines[edit.start - 2 : edit.start]]
    tail = list(edit.lines[edit.stop : edit.stop + edit.after])
    return case_of(edit, "elided middle", [*head, *edit.removed, *tail], [*head, *edit.added, *tail])


def joined(_: Random, edit: Edit) -> Case | None:
    for line in range(edit.first, edit.start - 1):
        here, below = edit.lines[line], edit.lines[line + 1]
        if here.rstrip().endswith(("(", ",", "[")) and below.strip() and len(here) + len(below) < 110:
            text = here.rstrip() + ("" if here.rstrip()[-1] in "([" else " ") + below.strip()
            case = _in_context(edit, "joined lines", line, [text])
            patch = {
                key: str(value).replace(text + "\n" + below + "\n", text + "\n", 1)
                for key, value in case.patches[0].items()
            }
            return replace(case, patches=[patch])
    return None


def split(random: Random, edit: Edit) -> Case | None:
    lines = [line for line in edit.context if ", " in edit.lines[line] and len(edit.lines[line]) > 30]
    if not lines:
        return None
    line = random.choice(lines)
    head, tail = edit.lines[line].rsplit(", ", 1)
    return _in_context(edit, "split line", line, [head + ",", indent_of(edit.lines[line]) + "        " + tail])


def other_word(random: Random, edit: Edit) -> Case | None:
    """One context line has another name, but the other lines identify the place."""
    names = [(line, match) for line in edit.context for match in NAME.finditer(edit.lines[line])]
    if not names or len(edit.context) < 4:
        return None
    line, match = random.choice(names)
    text = edit.lines[line]
    return _in_context(edit, "other word", line, [text[: match.start()] + "something" + text[match.end() :]])


# ---------------------------------------------------------------------------- two at once

_OUTER: tuple[Callable[[Case], Case], ...] = (
    lambda case: texts(case, lambda text: f"```\n{text}\n```"),
    lambda case: texts(case, lambda text: text.replace("\n", "\r\n")),
    lambda case: replace(
        case, text=case.text.replace("\n", "\r\n"), expected=(case.expected or "").replace("\n", "\r\n")
    ),
    lambda case: replace(case, text=f"\ufeff{case.text}", expected=f"\ufeff{case.expected}"),
    lambda case: texts(case, lambda text: "\n".join(f"{n}| {line}" for n, line in enumerate(text.split("\n"), 7))),
    lambda case: texts(case, lambda text: "\n".join(f"{n:6}\t{line}" for n, line in enumerate(text.split("\n"), 7))),
    lambda case: texts(case, html.escape) if "&" not in case.text else case,
    lambda case: texts(case, lambda text: "\n" + text + "\n\n"),
    lambda case: texts(case, lambda text: "\n".join(line + " " for line in text.split("\n"))),
    lambda case: texts(case, lambda text: text.replace("\n", "\\n")),
    lambda case: texts(case, lambda text: text.replace('"', '\\"')),
    lambda case: texts(case, shifted),
)


def two_at_once(random: Random, edit: Edit) -> Case | None:
    inner = random.choice(
        [
            dedented,
            indented_more,
            typo_in_context,
            typo_in_removed,
            comment_dropped,
            curly_by_model,
            nbsp_in_file,
            trailing_in_file,
            inner_spaces,
            line_dropped,
            blank_added,
            blank_dropped,
            two_for_four,
            tabs_by_model,
            quote_style,
            trailing_comma,
            elided,
            split,
        ]
    )
    case = inner(random, edit)
    if case is None or "\\" in "".join(edit.old + edit.new):
        return None
    return replace(random.choice(_OUTER)(case), kind="two at once")


KINDS: tuple[Callable[[Random, Edit], Case | None], ...] = (
    exact,
    part_of_line,
    replace_all,
    bare_lines,
    wrong_hint,
    dedented,
    indented_less,
    indented_more,
    first_line_bare,
    tabs_by_model,
    tabs_in_file,
    two_for_four,
    trailing_in_file,
    trailing_by_model,
    inner_spaces,
    blank_dropped,
    blank_added,
    blank_edges,
    curly_by_model,
    curly_in_file,
    nbsp_in_file,
    decomposed,
    crlf_file,
    crlf_model,
    byte_order_mark,
    no_final_newline,
    newline_mismatch,
    escaped_newlines,
    escaped_all,
    escaped_tabs,
    escaped_quotes,
    entities,
    numbers_pipe,
    numbers_colon,
    numbers_cat,
    numbers_old_only,
    fenced,
    diff_markers,
    typo_in_context,
    typo_in_removed,
    quote_style,
    trailing_comma,
    comment_dropped,
    line_dropped,
    elided,
    joined,
    split,
    other_word,
    two_at_once,
)
