"""Search the documents in the workspace without a network, ranked by BM25.

Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), with the usual k1 and b.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from adapter.core.errors import ToolError
from adapter.core.text.truncate import shorten
from adapter.tools.operations import Glob, SearchHit, SearchWeb
from adapter.workspace.files import listing
from adapter.workspace.files.read_file import read_text_unrecorded
from adapter.workspace.paths.resolver import WorkspaceRoot

PATTERNS = ("**/*.{md,rst,txt,adoc}", "**/README*")
MAX_FILES = 500
"""Maximum number of documents searched per file pattern."""
MAX_CHARACTERS = 8_000_000
"""Maximum total number of characters searched."""
SHOWN = 600
"""Maximum number of characters shown of a section. A longer section ends with ``...``."""
DESCRIPTION = "Search the documents in the workspace: there is no web search in this session."
"""Description of the search tool in a session that searches only the workspace."""
_K1, _B = 1.2, 0.75
_WORD = re.compile(r"[^\W_]+")
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t#]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DocSection:
    title: str
    path: str
    line: int
    text: str


def tokenize(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def rank_sections(sections: Sequence[DocSection], query: str) -> list[DocSection]:
    """Return the sections that contain a word of ``query``, best first. Words of a title count twice."""
    counts = [Counter(tokenize(section.title) * 2 + tokenize(section.text)) for section in sections]
    lengths = [count.total() for count in counts]
    average = sum(lengths) / len(lengths) if lengths else 1.0
    scores = [0.0] * len(sections)
    for word in dict.fromkeys(tokenize(query)):
        holding = sum(word in count for count in counts)
        weight = math.log(1 + (len(sections) - holding + 0.5) / (holding + 0.5))
        for index, count in enumerate(counts):
            frequency = count[word]
            length = 1 - _B + _B * lengths[index] / (average or 1)
            scores[index] += weight * frequency * (_K1 + 1) / (frequency + _K1 * length)
    order = sorted(range(len(sections)), key=lambda index: -scores[index])
    return [sections[index] for index in order if scores[index] > 0]


def split_sections(text: str, path: str) -> Iterator[DocSection]:
    """Split a document at its headings. The title of the first section is the path."""
    starts = [(0, path), *((match.start(), match[1]) for match in _HEADING.finditer(text))]
    for (start, title), (end, _) in zip(starts, [*starts[1:], (len(text), "")], strict=True):
        if text[start:end].strip():
            yield DocSection(title, path, text.count("\n", 0, start) + 1, text[start:end].strip())


class LocalSearch:
    """Searches the documents below ``root``. The addresses of its hits are ``path#line``."""

    def __init__(self, root: WorkspaceRoot) -> None:
        self._root = root

    def search(self, request: SearchWeb) -> list[SearchHit]:
        return self.search_with_notes(request)[0]

    def search_with_notes(self, request: SearchWeb) -> tuple[list[SearchHit], tuple[str, ...]]:
        """Return the hits, and notes on their source and on documents that were not searched."""
        if not tokenize(request.query):
            raise ToolError("the query has no words; give search terms")
        notes = ["these are documents of the workspace, not of the web"]
        sections = list(self._read_sections(notes))
        hits = [
            SearchHit(section.title, f"{section.path}#{section.line}", shorten(section.text, SHOWN))
            for section in rank_sections(sections, request.query)[: request.limit]
        ]
        return hits, tuple(notes)

    def _read_sections(self, notes: list[str]) -> Iterator[DocSection]:
        paths: dict[str, None] = {}
        for pattern in PATTERNS:
            listed = listing.find_by_glob(self._root, Glob(pattern, limit=MAX_FILES))
            paths |= dict.fromkeys(listed.paths)
            if listed.truncated:
                notes.append(f"only {MAX_FILES} files of {pattern} were searched")
        left = MAX_CHARACTERS
        for path in paths:
            try:
                text = read_text_unrecorded(self._root, path)
            except ToolError:
                continue  # binary, or deleted meanwhile
            left -= len(text)
            if left < 0:
                notes.append(f"only {MAX_CHARACTERS:,} characters of documents were searched, up to {path}")
                return
            yield from split_sections(text, path)
