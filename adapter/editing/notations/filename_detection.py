"""The file that a line of an answer names: alone, in a heading, in backticks, after ``File:``, or in a sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence

_PREFIX = re.compile(r"(?:#{1,6}|[-*+]|\d{1,2}[.)])\s+")
_LABEL = re.compile(r"(?:file(?:[ _]?(?:name|path))?|path)\s*:\s*(?P<path>.+)", re.IGNORECASE)
_TICKED = re.compile(r"`([^`\n]+)`")
_WITH_BLANKS = re.compile(r"\.{0,2}/?[\w.@-]+/[\w.@/() -]*\.\w{1,8}")
_WORD = re.compile(r"[\w@~.+/\\()\[\]#$-]*[\w)\]]")
_PROSE = re.compile(
    r"after|again|also|and|another|answer|before|block|changes?|code|diff|done|edits?|edited|example|finally|first|fix"
    r"(?:ed)?|here|last|lastly|new|next|note?|now|ok|okay|old|one|or|original|output|patch|plus|replace(?:ment)?|result"
    r"|same|search|second|so|solution|sure|that|then|third|this|two|updated?|usage|with|yes",
    re.IGNORECASE,
)
"""Words that stand alone above a block and are no file's name."""

_CUSTOMARY = re.compile(
    r"brewfile|build|codeowners|containerfile|copying|dockerfile|gemfile|hosts|jenkinsfile|justfile|license|makefile|"
    r"notice|pipfile|procfile|rakefile|readme|vagrantfile|workspace",
    re.IGNORECASE,
)
"""Names of files that have no ending."""

FENCE = re.compile(r"[ \t]{0,3}(?P<marks>```+|~~~+)[ \t]*(?P<info>[^\n`]*)")


def find_path(line: str) -> str | None:
    """The path that ``line`` names, None for a line that names none or more than one."""
    alone = bare_path(line)
    if alone is not None or " " not in line.strip():
        return alone
    ticked = _TICKED.findall(line)
    said = [word for word in (ticked or _words(line)) if _is_path(word)]
    return said[0] if len(set(said)) == 1 else None


def bare_path(line: str) -> str | None:
    """The path that ``line`` consists of, markup and a label aside."""
    text = line.strip()
    text = _PREFIX.sub("", text, count=1).strip("*").strip()
    label = _LABEL.fullmatch(text)
    if label is not None:
        return _bare(label["path"]) or None
    bare = _bare(text)
    if text.rstrip(":") == f"`{bare}`":
        return bare or None
    if " " in bare:
        return bare if _WITH_BLANKS.fullmatch(bare) else None
    return bare if _is_path(bare) or _is_name(bare) else None


def is_unambiguous_path(path: str) -> bool:
    """Whether the name alone tells a file: by an ending, a directory, or because it is a customary one."""
    return _is_path(path) or _CUSTOMARY.fullmatch(path) is not None


def find_path_above(lines: Sequence[str], number: int) -> str | None:
    """The path on the nearest line above ``number``, with a fence or blank lines between."""
    for above in range(number - 1, max(-1, number - 6), -1):
        if lines[above].strip() and not FENCE.fullmatch(lines[above]):
            return find_path(lines[above])
    return None


def _bare(text: str) -> str:
    return text.strip().rstrip(":").strip("`*\"'").strip()


def _words(text: str) -> list[str]:
    return [word.strip("`*\"'(),;:!?").rstrip(".") for word in text.split()]


def _is_path(word: str) -> bool:
    """A name with a slash or an ending; no number, address, abbreviation or end of a sentence."""
    if "://" in word or not _WORD.fullmatch(word) or word.lower() in ("e.g", "i.e"):
        return False
    name = word.replace("\\", "/").rsplit("/", 1)[-1]
    has_ending = "." in name.strip(".") or (name.startswith(".") and len(name) > 2)
    return ("/" in word or has_ending) and any(map(str.isalpha, name))


def _is_name(word: str) -> bool:
    return re.fullmatch(r"[\w-]+", word) is not None and not word.isdigit() and not _PROSE.fullmatch(word)
