"""Match formatted code in a minified line of JavaScript or JSON, where spaces between tokens have no meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

from adapter.core.text.diffs import find_changes
from adapter.editing.matching.document_index import DocumentIndex
from adapter.editing.matching.normalize import is_word_character
from adapter.editing.matching.strategies import TextMatch, match_part
from adapter.editing.repairs.interpretations import Interpretation

MAX_BLANKS = 0.08
"""Maximum share of spaces and tabs in a minified line, including strings."""
MAX_OLD = 20_000
"""Maximum length of the old text, in characters."""
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|`[^`]*`|\w+|[^\w\s]')
_NO_TOKENS = re.compile(r"//|/\*|[=(,:;!&|?{}\[]\s*/[^/\n]*[ \t]")
"""Matches syntax that cannot be split into tokens: comments, and regular expressions that contain spaces."""
_SCRIPT = re.compile(r"\s*[{\[]|(?!\s*<).*(?:\bfunction\b|=>|\breturn\b)")
_JOINS = re.compile(r"\w\w|\+\+|--|//|/\*|<!")
"""Matches the adjacent characters of two tokens that mean something else without a space between them."""
_OPEN, _CLOSED = set(";{([,:"), set(";)]},:")
"""Tokens after which, and tokens before which, a line break does not end a statement."""


def match_minified(search: DocumentIndex, interpretation: Interpretation) -> Iterator[TextMatch]:
    """Match the tokens of the old text in a minified line. Text that the patch adds is written without spaces."""
    if not search.long_lines:
        return
    old, texts = _TOKEN.findall(interpretation.old), interpretation.old + "\n" + interpretation.new
    if len(old) < 2 or len(interpretation.old) > MAX_OLD or _NO_TOKENS.search(texts):
        return
    document = search.document
    lines = [index for index in search.long_lines if is_minified(document.lines[index])]
    if not lines:
        return
    pattern = re.compile(_compile_tokens(interpretation.old))
    for index in lines:
        offset = document.get_view_offset(index)
        for found in pattern.finditer(document.lines[index]):
            written = partial(_render_tokens, old, interpretation.new, found[0])
            yield match_part(document, offset + found.start(), offset + found.end(), written, "whitespace")


def is_minified(line: str) -> bool:
    """Return whether a line is JavaScript or JSON with almost no spaces. In CSS, spaces can be significant."""
    is_dense = line.count(" ") + line.count("\t") <= MAX_BLANKS * len(line)
    return is_dense and _SCRIPT.match(line) is not None


def _compile_tokens(text: str) -> str:
    """Return a regular expression for the tokens with any number of spaces, and at least one where they would merge."""
    tokens = list(_TOKEN.finditer(text))
    parts = [re.escape(tokens[0][0])]
    for before, token in pairwise(tokens):
        is_joined = _JOINS.fullmatch(before[0][-1] + token[0][0]) is not None
        needed = r"[ \t]+" if before.end() < token.start() else ""
        parts += [needed if is_joined else r"[ \t]*", re.escape(token[0])]
    edges = (r"(?<!\w)" * is_word_character(tokens[0][0][0]), r"(?!\w)" * is_word_character(tokens[-1][0][-1]))
    return edges[0] + "".join(parts) + edges[1]


def _render_tokens(old: Sequence[str], new: str, actual: str) -> str:
    """Return the new text with the file's spaces between kept tokens, and others only where tokens would merge."""
    found = list(_TOKEN.finditer(actual))
    gaps = [actual[before.end() : after.start()] for before, after in pairwise(found)]
    written = list(_TOKEN.finditer(new))
    tokens = [token[0] for token in written]
    rows = dict[int, int]()
    old_row = 0
    for change in [*find_changes(old, tokens), None]:
        stop = len(old) if change is None else change.start
        start = len(tokens) - (len(old) - old_row) if change is None else change.new_start - (stop - old_row)
        rows.update((start + step, old_row + step) for step in range(stop - old_row))
        old_row = len(old) if change is None else change.end
    parts = tokens[:1]
    for row in range(1, len(tokens)):
        is_kept = row in rows and rows.get(row - 1) == rows[row] - 1
        blanks = new[written[row - 1].end() : written[row].start()]
        is_statement_end = "\n" in blanks and tokens[row - 1] not in _OPEN and tokens[row] not in _CLOSED
        joins = _JOINS.fullmatch(tokens[row - 1][-1] + tokens[row][0]) is not None
        gap = "\n" if is_statement_end else " " * (joins and bool(blanks))
        parts += [gaps[rows[row] - 1] if is_kept else gap, tokens[row]]
    return "".join(parts)
