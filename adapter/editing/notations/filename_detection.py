"""Find a file path in a line of a response.

The path may be the whole line, or occur in a heading, in backticks, after ``File:`` or in a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_PREFIX = re.compile(r"(?:#{1,6}|[-*+]|\d{1,2}[.)])\s+")
_LABEL = re.compile(r"(?:file(?:[ _]?(?:name|path))?|path)\s*:\s*(?P<path>.+)", re.IGNORECASE)
_CODE_SPAN = re.compile(r"`([^`\n]+)`")
_PATH_WITH_SPACES = re.compile(r"\.{0,2}/?[\w.@-]+/[\w.@/() -]*\.\w{1,8}")
_WORD = re.compile(r"[\w@~.+/\\()\[\]#$-]*[\w)\]]")
_PROSE = re.compile(
    r"after|again|also|and|another|answer|before|block|changes?|code|diff|done|edits?|edited|example|finally|first|fix"
    r"(?:ed)?|here|last|lastly|new|next|note?|now|ok|okay|old|one|or|original|output|patch|plus|replace(?:ment)?|result"
    r"|same|search|second|so|solution|sure|that|then|third|this|two|updated?|usage|with|yes",
    re.IGNORECASE,
)
"""Matches words above a block that look like file names and usually are not."""

_NAMES_WITHOUT_EXTENSION = re.compile(
    r"brewfile|build|codeowners|containerfile|copying|dockerfile|gemfile|hosts|jenkinsfile|justfile|license|makefile|"
    r"notice|pipfile|procfile|rakefile|readme|vagrantfile|workspace",
    re.IGNORECASE,
)
"""Matches well-known file names without an extension."""

FENCE = re.compile(r"[ \t]{0,3}(?P<marks>```+|~~~+)[ \t]*(?P<info>[^\n`]*)")


def opens_diff(line: str) -> bool:
    """Return whether ``line`` opens a code fence for a diff."""
    fence = FENCE.fullmatch(line)
    return fence is not None and fence["info"].strip().lower().split(" ")[0] in ("diff", "patch", "udiff")


def find_path(line: str) -> str | None:
    """Return the path in ``line`` if it contains exactly one, otherwise None."""
    alone = find_bare_path(line)
    if alone is not None or " " not in line.strip():
        return alone
    code_spans = _CODE_SPAN.findall(line)
    paths = [word for word in (code_spans or _split_words(line)) if _is_path(word)]
    return paths[0] if len(set(paths)) == 1 else None


def find_bare_path(line: str) -> str | None:
    """Return the path in ``line``, or None if the line contains more than the path, markup and a label."""
    text = line.strip()
    text = _PREFIX.sub("", text, count=1).strip("*").strip()
    label = _LABEL.fullmatch(text)
    if label is not None:
        return _strip_markup(label["path"]) or None
    bare = _strip_markup(text)
    if text.rstrip(":") == f"`{bare}`":
        return bare or None
    if " " in bare:
        return bare if _PATH_WITH_SPACES.fullmatch(bare) else None
    return bare if _is_path(bare) or _is_name(bare) else None


def is_unambiguous_path(path: str) -> bool:
    """Return whether ``path`` has an extension or a directory, or is a well-known file name."""
    return _is_path(path) or _NAMES_WITHOUT_EXTENSION.fullmatch(path) is not None


def find_path_above(lines: Sequence[str], number: int) -> str | None:
    """Return the path in the nearest line above ``number``, or in a heading above that line, or None. Code fences and
    blank lines are skipped."""
    near = (line for line in lines[max(0, number - 6) : number][::-1] if line.strip() and not FENCE.fullmatch(line))
    path = find_path(next(near, ""))
    headings = (find_bare_path(line) for line in near if line.startswith("#"))
    return path or next((each for each in headings if each and is_unambiguous_path(each)), None)


def _strip_markup(text: str) -> str:
    return text.strip().rstrip(":").strip("`*\"'").strip()


def _split_words(text: str) -> list[str]:
    return [word.strip("`*\"'(),;:!?").rstrip(".") for word in text.split()]


def _is_path(word: str) -> bool:
    """Return whether a word has a slash or an extension and is not a number, a URL or an abbreviation."""
    if "://" in word or not _WORD.fullmatch(word) or word.lower() in ("e.g", "i.e"):
        return False
    name = word.replace("\\", "/").rsplit("/", 1)[-1]
    has_extension = "." in name.strip(".") or (name.startswith(".") and len(name) > 2)
    return ("/" in word or has_extension) and any(map(str.isalpha, name))


def _is_name(word: str) -> bool:
    return re.fullmatch(r"[\w-]+", word) is not None and not word.isdigit() and not _PROSE.fullmatch(word)
