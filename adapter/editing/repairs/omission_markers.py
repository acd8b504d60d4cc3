"""Detect lines that represent omitted lines: ``...``, ``# ... existing code ...``, ``// unchanged``.

Such a comment may also be meant literally. A comment without dots is therefore an omission only if the edit would
otherwise lose lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from rapidfuzz import fuzz

from adapter.core.text.diffs import find_changes
from adapter.editing.repairs.reindent import measure_indent

_OPENING = r"(?:#(?!#)|//|/\*+|--|;+|%|<!--|\{/\*|\*|\(\*|[\[(<])"
_CLOSING = r"(?:\*/\}?|-->|\*\)|[\])>])"
_START = re.compile(r"\s*(?:[#/;%<{*(\[\u2026-]|\.\.)")
"""Matches the start of every line that can be an omission. It rules out most lines quickly."""
_COMMENT = re.compile(r"\s*(?:#(?!include|define|if|else|endif)|//|[{(]?/?\*|--|[;%]+(?=\s)|<!--)")
_DOTS = r"(?:\.{2,}|\u2026)"
_LINE = re.compile(
    rf"\s*(?P<opening>(?:{_OPENING}\s*)*)(?P<before>{_DOTS})?(?P<words>[^\n]{{0,80}}?)(?P<after>{_DOTS})?[.,]?"
    rf"\s*(?:{_CLOSING}\s*)*"
)
_SPREAD = re.compile(r"\s*\.{3}\w+(?:\s*[:,;)].*)?")
"""Matches a spread or rest parameter, as in ``...rest: Rest``."""
_LEFT_OUT = re.compile(
    r"rest|remaining|remainder|existing|unchanged|same|identical|previous|others?|omitted|"
    r"elided|unmodified|untouched|unaltered|intact|above|before|skip|skipped|snip|snipped|"
    r"truncated|brevity|etc|original|no|nothing"
)
_FILLER = re.compile(
    r"after|all|already|and|any|are|arguments?|as|attributes?|be|been|below|blocks?|bodies|"
    r"body|cases?|changes?|changed|class(?:es)?|code|component|config|contents?|continues?|"
    r"definitions?|do(?:es)?|document|elements?|else|entries|entry|exactly|fields?|files?|for|"
    r"from|functions?|go(?:es)?|handlers?|has|have|here|implementations?|imports?|in|is|its?|"
    r"items?|just|keeps?|kept|keys?|lines?|logic|markup|members?|methods?|modifications?|"
    r"module|not|now|of|ones?|options?|or|output|parameters?|parts?|props?|properties|"
    r"property|remains?|routes?|rows?|rules?|sections?|settings?|statements?|stays?|stayed|"
    r"still|styles?|template|tests?|text|that|the|there|these|they|this|those|to|types?|until|"
    r"leave|left|values?|variables?|version|was|were|with"
)
_REMARK = re.compile(
    r"\s*(?:(?:#|--|[;%]+)(?=\s)|//(?!/)|\{?/\*(?!\*)|<!--|\(\*)(?P<words>[^;{}=\n]*?)[\s*]*(?:\*/\}?|-->|\*\))?\s*"
)
"""Matches a comment that is neither code nor a documentation comment such as `/// Return` or `/** Return */`."""
MIN_ALIKE = 90
"""Minimum similarity, in percent, between a removed line and the new line that replaces it."""
MIN_PARTNER = 60
"""Minimum similarity, in percent, between a new line and the removed line in the same place."""
MIN_REPLACED = 2
"""Minimum number of lost lines that a comment next to removed comments, or above new code, can represent."""
MAX_PER_HUNK = 50
"""Maximum number of a hunk's comments that are compared with its removed lines."""
MIN_COPIED = 0.5
"""If at least this share of a new file's lines is copied, any short comment can be a placeholder. A file with fewer
copies was probably rewritten."""
MAX_REPLACEMENT_WORDS = 8
"""Maximum number of words in a comment that can represent code without naming it."""
MAX_NAMED_WORDS = 3
"""Maximum number of words in a comment that represents the code it names, such as ``existing child nodes``."""
_REST = ("rest", "remaining", "remainder")
_OMITTED = {"omitted", "elided", "snipped", "truncated"}
_NAME = re.compile(r"[^\W\d]\w*")
_ASSIGNMENT = re.compile(r"\s*(?:[^\W\d]\w* +){0,3}([^\W\d]\w*)(?:: *[\w.<>\[\]]+)? *:?=(?![=>])")
"""Matches a line that assigns a name."""
_ACRONYM = re.compile(r"\bREST\b(?! OF\b)")
"""Matches REST, the architecture, but not "the rest" in an omission."""


def is_elision(line: str) -> bool:
    """Return whether a line replaces omitted lines: ``...``, ``# ...``, ``// ... existing code ...``."""
    return line.strip() in ("...", "\u2026") or is_omission_comment(line)


def is_omission_comment(line: str) -> bool:
    """Return whether a line is a comment that replaces code, like ``# ... existing code ...``.

    A bare ``...`` does not count, because it is valid Python.
    """
    match = _match(line)
    if match is None:
        return False
    words = _split_words(match["words"])
    if not words:
        return bool(match["before"] and match["opening"]) and not match["words"].strip()
    if match["before"] and any(map(_LEFT_OUT.fullmatch, words)):
        return True
    is_promise = bool(match["after"]) or {*words[: 2 if words[0] == "the" else 1]} & {*_REST} or _OMITTED & {*words}
    return bool(is_promise) and len(words) > 1 and _has_only_known_words(words)


def find_omissions(old: Sequence[str], new: Sequence[str]) -> Iterator[int]:
    """Yield the indexes of the lines of ``new`` that replace omitted lines of ``old``."""
    possible = {index for index in range(len(new)) if _may_be_omission(new, index)}
    if not possible:
        return
    found: set[str] = set()
    filled = [index for index, line in enumerate(new) if line.strip()]
    if _count_code(old) > _count_code(new):
        found.update(new[index].strip() for index in possible.intersection((filled[0], filled[-1])))
    for hunk in find_changes(old, new):
        added = possible.intersection(range(hunk.new_start, hunk.new_end))
        removed, written = old[hunk.start : hunk.end], new[hunk.new_start : hunk.new_end]
        is_loss = _count_code(removed) > _count_code(written)
        edges = _find_edges_for_lost_lines(removed, written) if added else ()
        found.update(
            new[index].strip()
            for index in added
            if is_loss or is_omission_comment(new[index]) or index - hunk.new_start in edges
        )
    yield from (index for index in sorted(possible) if new[index].strip() in found)


def find_lossy_omission(old: str, new: str, is_prose: bool = False) -> str:
    """Return a line of a file's ``new`` text that represents omitted ``old`` lines, or "" if there is none."""
    before, after = old.splitlines(), new.splitlines()
    known, written = ({line.strip() for line in lines} for lines in (before, after))
    indexes = [] if known <= written else [*find_omissions(before, after)]
    if len(known & written) >= MIN_COPIED * len(written):
        indexes += find_replacing_comments(before, after, is_prose)
    return next((line for index in indexes if (line := after[index].strip()) not in known), "")


def find_replacing_comments(old: Sequence[str], new: Sequence[str], is_prose: bool = False) -> Iterator[int]:
    """Yield the indexes of short comments in ``new``, in any words (``// trimmed``, ``# your code here``), that
    probably represent code that is lost next to them.

    Consecutive comments are not included, because they are commented-out code. In prose, ``# Title`` is a heading.
    """
    possible = {
        index
        for index, line in enumerate(new)
        if _is_short_comment(line) and not (is_prose and line.lstrip().startswith("#"))
    }
    for hunk in find_changes(old, new) if possible else ():
        written, removed = range(hunk.new_start, hunk.new_end), old[hunk.start : hunk.end]
        lost = _count_code(removed) - _count_code(new[written.start : written.stop])
        if lost >= MIN_REPLACED or (lost > 0 and not any(map(_COMMENT.match, removed))):
            comments = (
                index for index in written if index in possible and not _has_adjacent_comment(new, index, written)
            )
            for index in islice(comments, MAX_PER_HUNK):
                if _represents_code(new[index : written.stop], removed, new[written.start : index]):
                    yield index


def _is_short_comment(line: str) -> bool:
    match = _REMARK.fullmatch(line)
    words = match["words"] if match else ""
    return len(words.split()) <= MAX_REPLACEMENT_WORDS and any(map(str.isalpha, words))


def _has_adjacent_comment(new: Sequence[str], index: int, written: range) -> bool:
    return any(_COMMENT.match(new[at]) for at in (index - 1, index + 1) if at in written)


def _represents_code(written: Sequence[str], removed: Sequence[str], above: Sequence[str]) -> bool:
    """Return whether the comment ``written[0]``, below the lines ``above``, represents some of the ``removed`` lines. A
    comment on the new code below it does not, unless that code uses a name that the removed lines assign, or replaces
    only the last of the removed lines."""
    comment, below = written[0].strip(), "".join(written[1:2])
    if any(fuzz.ratio(line.strip(), comment) >= MIN_PARTNER for line in removed):  # commented out, or reworded
        return False
    if not _count_code([below]) or measure_indent(below) != measure_indent(written[0]):
        return True
    lost = set(_find_assigned(removed)).difference(_find_assigned((*above, *written)))
    if not lost.isdisjoint(_NAME.findall("\n".join(written[1:]))):
        return True
    code = [line.strip() for line in removed if _count_code([line])]
    alike, last = max((fuzz.ratio(line, below.strip()), at) for at, line in enumerate(code))
    return alike >= MIN_PARTNER and last - _count_code(above) >= MIN_REPLACED


def _find_assigned(lines: Sequence[str]) -> Iterator[str]:
    return (match[1] for line in lines if (match := _ASSIGNMENT.match(line)))


def is_like_known_omission(line: str, known: Sequence[str], loses_nothing: bool) -> bool:
    """Return whether the document itself contains such a line. An apparent omission may then be meant literally.

    ``known`` has the document's lines that look like omissions. If ``loses_nothing`` is true, dots may also differ from
    the document's dots.
    """
    spelled = {"".join(other.split()) for other in known}
    has_dots = any(not re.search(r"\w", other) for other in known)
    return "".join(line.split()) in spelled or (loses_nothing and has_dots and not re.search(r"\w", line))


def may_be_elision(line: str) -> bool:
    """Return whether a line that does not occur in the file probably replaces omitted lines.

    A comment that begins with dots always does: ``// ... validation``.
    """
    match = _match(line)
    if match is None or is_elision(line) or (match["before"] and _COMMENT.match(line)):
        return match is not None
    words = _split_words(match["words"])
    is_marked = bool(match["opening"] or match["after"])
    is_named = words[:1] == ["existing"] and len(words) <= MAX_NAMED_WORDS
    return is_marked and (is_named or (any(map(_LEFT_OUT.fullmatch, words)) and _has_only_known_words(words)))


def _may_be_omission(lines: Sequence[str], index: int) -> bool:
    line = lines[index]
    if line.strip() in ("...", "\u2026"):
        return not _is_stub(lines, index)
    match = _match(line)
    is_promise = (
        match is not None and match["opening"] and any(word in _REST for word in _split_words(match["words"])[:2])
    )
    return bool(is_promise) or may_be_elision(line)


def _match(line: str) -> re.Match[str] | None:
    match = _LINE.fullmatch(line) if _START.match(line) and not _SPREAD.fullmatch(line) else None
    return match if match and (match["opening"] or match["before"]) else None


def _split_words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", _ACRONYM.sub("", text).lower())


def _has_only_known_words(words: Sequence[str]) -> bool:
    return all(_LEFT_OUT.fullmatch(word) or _FILLER.fullmatch(word) for word in words)


def _find_edges_for_lost_lines(removed: Sequence[str], written: Sequence[str]) -> set[int]:
    """Return the indexes of the first and last lines in ``written``, if they may represent the lost first and last
    lines of ``removed``. A removed line is not lost if another written line is similar to it."""
    filled = [index for index, line in enumerate(written) if line.strip()]
    code = [line.strip() for line in removed if re.search(r"\w", line)]
    pairs = [(filled[0], code[0]), (filled[-1], code[-1])] if filled and code else []
    return {
        edge
        for edge, lost in pairs
        if all(fuzz.ratio(lost, written[index].strip()) < MIN_ALIKE for index in filled if index != edge)
    }


def _is_stub(lines: Sequence[str], index: int) -> bool:
    """Return whether a ``...`` is the whole body of a Python function or class."""
    above = next((line for line in reversed(lines[:index]) if line.strip()), "")
    below = next((line for line in lines[index + 1 :] if line.strip()), "")
    depth = measure_indent(lines[index])
    return above.rstrip().endswith((":", '"""')) and (not below or measure_indent(below) < depth)


def _count_code(lines: Sequence[str]) -> int:
    """Return the number of lines that are neither blank nor comments nor omissions."""
    return sum(bool(line.strip()) and not _COMMENT.match(line) and not is_elision(line) for line in lines)
