"""Where a request wants something done: a folder, or a place by its name."""

from __future__ import annotations

from adapter.prompting.languages import IN
from adapter.prompting.ranking import stem
from adapter.values.lazy_pattern import lazy_pattern

_NAME = r"[A-Z][\w.'-]*\w(?: (?:(?:de|del|di|la|le) )?[A-Z][\w'-]*)*"
_NAMED = lazy_pattern(rf"(?<!\w)(?i:{'|'.join(IN)}) (?:the )?({_NAME})(, {_NAME})?")
_WITH_REGION = lazy_pattern(rf"(?<!\w)({_NAME}, [A-Z]{{2}})(?!\w)")
_FOLDER = lazy_pattern(r"(?i)\b(?:in|inside|under|within) (?:the (?:folder |directory )?)?([\w./-]*\w/?)")
_EVERYWHERE = frozenset(
    map(stem, ("project", "code", "file", "repository", "repo", "all", "every", "this", "my", "our"))
)


def named(request: str) -> list[str]:
    """Names behind "in" and the like; first with the larger place behind a comma, then without: "Olten, Solothurn"."""
    found = [[inner + outer, inner] if outer else [inner] for inner, outer in _NAMED.findall(request)]
    return list(dict.fromkeys(name for names in found for name in names))


def with_regions(request: str) -> list[str]:
    """Names with a region of two letters: "Chicago, IL"."""
    return list(dict.fromkeys(_WITH_REGION.findall(request)))


def folders(request: str) -> list[str]:
    """A path after "in" and the like, or a word there that stands alone."""
    return [place for place in dict.fromkeys(_FOLDER.findall(request)) if stem(place.lower()) not in _EVERYWHERE]
