"""Find template variables such as [NAME] in requests, and text around them that an edit lost."""

from __future__ import annotations

import re
from collections.abc import Collection

from adapter.core.text.word_stems import find_words

_BRACKETED = r"\{\{?[^{}\n]{1,40}\}\}?|\[[^\[\]\n]{1,40}\]|<[^<>\n]{1,40}>|\$\w+|%\w+%"
BRACKETED_VARIABLE = re.compile(_BRACKETED)
"""Matches {{name}}, {name}, [NAME], <name>, $name and %name%."""
VARIABLE = re.compile(rf"{_BRACKETED}|\b[A-Z][A-Z_]{{2,}}\b")
"""Matches {{name}}, {name}, [NAME], <name>, $name, %name% and NAME."""


def find_lost_word(variables: Collection[str], old: str, new: str, request: str) -> str:
    """Return a word next to a variable that an edit removed although the user did not request it, or "".

    The edit replaces ``old``, the text of a template, with ``new``. A word is next to a variable if both are on
    one line. Filling in a template should keep such words.
    """
    lines = [line for line in old.splitlines() if any(name in line for name in variables)]
    text = re.sub("|".join(map(re.escape, variables)) or r"\Z", " ", "\n".join(lines))
    return min(find_words(text) - find_words(new) - find_words(request), default="")
