"""Find lines that may begin a call in words (`adapter.parsing.bodies.worded_call`).

Such a line begins with punctuation and a word that announces a call or is a tool's name. A search compares the first
letters before whole words, because most lines differ there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from adapter.parsing.bodies.worded_call import ANNOUNCING_WORDS, build_head
from adapter.parsing.marker_patterns import build_alternatives
from adapter.parsing.marker_set import WeakMarker
from adapter.parsing.stream_buffer import NAME_LIMIT

FIRST_WORDS = (
    *ANNOUNCING_WORDS, "running", "executing", "name", "recipient", "assistant", "default_api", "print(", "to=",
)  # fmt: skip
"""First words of lines that announce a call before the tool's name."""

_OTHER_SIGNS = r"{\[>|`+}\])\"',;./$&%"
"""Punctuation that cannot come before the first word, because it begins other text or is a marker."""
_SIGNS = rf"[ \t]{{0,9}}+[^\w\s<{_OTHER_SIGNS}]{{0,9}}+[ \t]?+<{{0,3}}+"
_ROUGH_SIGNS = rf"[^A-Za-z0-9_\n\r\f\v{_OTHER_SIGNS}]{{0,22}}+"
"""A simpler and faster pattern than `_SIGNS`. It also matches some other text."""
_ANY_FIRST_WORD = "|".join(map(re.escape, FIRST_WORDS))
_FIRST_LETTERS = 4
"""Number of letters that a search compares before whole words."""
_AFTER_WORD = r"(?:[^\n:={(\[<]{0,60}+[:={(\[<]|[\w ]{0,24}+\n)"
_AFTER_NAME = r"\s{0,2}(?:[^\w\s.?!,;-]|\w+\s?[=:]|\.call)"
_signs = re.compile(_SIGNS)
_begun_words = re.compile(rf"(?i:{_ANY_FIRST_WORD})[^\n:={{(\[<]{{0,60}}")
_begun_after_name = r"(?:\s{0,2}\w{0,40}\s?|\.\w{0,3})"
_is_plain_name = re.compile(r"[\w-]+").fullmatch
_begun_after_plain_name = re.compile(rf"([\w-]++){_begun_after_name}")
_listed_words = "\n" + "\n".join(FIRST_WORDS)


class WordedCallStart(WeakMarker):
    """The condition for a line break to count as a marker: the next line may begin a call in words to one of the tools
    ``names``."""

    __slots__ = ("_begun_odd_name", "_listed_names", "_names")

    max_undecided = 150

    def __init__(self, names: Sequence[str]) -> None:
        odd_name = "|".join(re.escape(name) for name in names if not _is_plain_name(name)) or "(?!)"
        super().__init__(
            rf"{_SIGNS}(?:(?i:{_ANY_FIRST_WORD}){_AFTER_WORD}|(?:{odd_name}){_AFTER_NAME}|([\w-]++){_AFTER_NAME})",
            frozenset(names),
        )
        self._names, self._listed_names = tuple(names), "\n" + "\n".join(names)
        self._begun_odd_name = f"(?:{odd_name}){_begun_after_name}"
        one, two, three, four = (_build_letter_class(names, at) for at in range(_FIRST_LETTERS))
        short = build_alternatives(word for word in (*FIRST_WORDS, *names) if len(word) < _FIRST_LETTERS)
        first = f"(?:{one}{two}{three}{four}|{short})"
        self.rough = _ROUGH_SIGNS + first
        self.rough_beginning = rf"{_SIGNS}(?:{one}(?:{two}{three}?+)?+)?+\Z"
        self.search = f"{_ROUGH_SIGNS}(?={first}){build_first_words(names)}"

    def accepts(self, text: str, end: int) -> bool:
        if not super().accepts(text, end):
            return False
        if len(text) - end < NAME_LIMIT:
            return True  # the parser waits for more text
        head = build_head(self._names).match(text, end, end + NAME_LIMIT)
        return head is not None and head.lastgroup != "head"

    def may_accept(self, text: str, end: int) -> bool:
        if len(text) - end > self.max_undecided:
            return False
        signs = _signs.match(text, end)
        begun = text[signs.end() if signs else end :]
        if f"\n{begun}" in self._listed_names or f"\n{begun.lower()}" in _listed_words or _begun_words.fullmatch(begun):
            return True
        named = _begun_after_plain_name.fullmatch(begun)
        return named[1] in self.words if named else re.fullmatch(self._begun_odd_name, begun) is not None


def build_first_words(names: Iterable[str]) -> str:
    """Return a pattern for a call's first words and the punctuation after them."""
    named = rf"|(?:{build_alternatives(names, exact=True)})(?![\w-]){_AFTER_NAME}" if names else ""
    return rf"(?:(?:{build_alternatives(FIRST_WORDS)}){_AFTER_WORD}{named})"


def build_line_start(names: Iterable[str]) -> str:
    """Return a pattern for words that may announce a call at a line start, and the punctuation after them."""
    return _SIGNS + build_first_words(names)


def _build_letter_class(names: Iterable[str], index: int) -> str:
    """Return a character class of the letters that `FIRST_WORDS`, in either case, and ``names`` have at ``index``."""
    letters = {
        spelling for word in FIRST_WORDS for spelling in (word[index : index + 1], word[index : index + 1].upper())
    }
    letters |= {name[index : index + 1] for name in names}
    return f"[{re.escape(''.join(sorted(letters)))}]"
