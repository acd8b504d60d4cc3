"""Determine the action that a request asks for, and the files of this action."""

from __future__ import annotations

import re

from adapter.conversation.guardrails.removing_commands import is_removed, list_removed_paths
from adapter.core.events import JsonObject
from adapter.prompting.intent.text_values import find_paths, find_quoted
from adapter.prompting.intent.verbs import asks_for, find_requested_action
from adapter.tools.argument_synonyms import COMMAND, CONTENT, NEW_TEXT, OLD_TEXT

_TEXTS = frozenset({*CONTENT, *OLD_TEXT, *NEW_TEXT} - {"from", "to"})
MAX_BEFORE = 60
"""Number of characters before a path that are searched for a word such as "keep"."""
_INSIDE = re.compile(
    r"(?i)\b(?:at|from|in|inside|into|(?<!\brid\s)(?<!dispose\s)of|to|within|an|aus|im|von|zu[mr]?|à|au|dans|du|de|sur"
    r"|(?<!add\s)a|al|alla|del|di|da|nel|ao|em|en|aan)\s+\W*\Z"
)
ABOUT = re.compile(r"(?i)\b(?:about|for|from|of|on|with|aus|über|von|zu|de|del|di|du|sobre|su|sur)\s+\W*\Z")
"""Matches the end of the text before a path if the request concerns a change within this file, or a text about it."""
_AND = re.compile(r"[`'\"\s]*(?:[,&+]|\s(?:and|und|et|y|e)\s)[`'\"\s]*")
"""Matches the text between two paths of a list."""
_WHOLE_FILE = re.compile(
    r"""\w+\s(?:(?P<pronoun>it|them|both)|(?:this|that|the)\sfile|(?:die|diese)\sdatei|(?:le|ce)\sfichier
    |(?:el|este)\sarchivo)\b(?!\s+from\b)""",
    re.IGNORECASE | re.VERBOSE,
)
"""Matches a verb whose object is a file named before. A pronoun may also mean a part of the file."""
_IS_USELESS = re.compile(
    r"""[`'"\s,.;:]*(?:(?:is|are|can|could|go|old|out|outdated|obsolete|unused|useless|no|not|longer|needed|used|use|of
    |any|more|anymore|now|all|both|so|and|please)\b[\s,.;:]*)*""",
    re.IGNORECASE | re.VERBOSE,
)
"""Matches the text between files and a verb whose pronoun means these files: "a.txt and b.txt can go, delete them"."""
_NEEDS = re.compile(r"\b(?:need|read|use|want)s?\s+(?:the\s+)?(?:file\s+)?\W?\Z", re.IGNORECASE)
"""Matches the text before a path to which a pronoun in the next sentence refers."""
_FILE = r"(?:the\s+)?(?:files?\s+)?[`'\"]?[\w./\\-]+\.\w+[`'\"]?"
_PUTS_FILE = re.compile(
    rf"put\s+{_FILE}(?:(?:\s*[,&]\s*|\s*,?\s+and\s+){_FILE})*\s+(?:in|into|inside|to|under)\s+"
    r"(?:\S+/(?=[\s.,;]|$)|(?:the\s+)?(?:\S+\s+)?(?:directory|folder)\b)",
    re.IGNORECASE,
)
"""Matches a request to put whole files into a directory."""
_ARTICLES = r"\s+(?:(?:in|the|die|der|das|le|la|el|il|o|file|datei|fichier|archivo|arquivo|bestand)\s+){0,3}[`'\"]?\Z"
_EXCLUDES_WORDS = r"""except(?:\s+for)?|excluding|(?:all|everything|files)\s+but|but\s+not|other\s+than|apart\s+from
    |außer|bis\s+auf|sauf|excepto|salvo|tranne|eccetto|exceto|behalve"""
_EXCLUDES = re.compile(rf"(?<!\w)(?:{_EXCLUDES_WORDS}){_ARTICLES}", re.IGNORECASE | re.VERBOSE)
"""Matches the text before a path that is the exception to the request, also if it is the only path."""
_KEEPS = re.compile(
    rf"""(?<!\w)(?:{_EXCLUDES_WORDS}|keep|leave|spare|preserve|not|(?:do\s+not|don['’]t|never)\s+(?:change|delete|edit
    |modify|move|remove|touch)|behalte|lass|nicht|garde[rz]?|laisse[rz]?|pas|conserva|deja|lascia|tieni|non|mantenha
    |deixe|não|houd|niet){_ARTICLES}""",
    re.IGNORECASE | re.VERBOSE,
)
"""Matches the text before the path of a file that must stay unchanged."""
_INSTEAD = re.compile(r"[`'\"]?\W{1,3}(?:(?:but|just|only|instead|rather|please|and|then)\s+)*(\w+)\s+(?:it|them)\b")
"""Matches the text after a path if something is to be done with this file: "Don't delete a.txt, move it"."""
_PART = re.compile(
    r"['’]s\b|[`'\"]?,?\s+(?:class|column|entry|field|function|heading|key|lines?|method|row|section|value)\b",
    re.IGNORECASE,
)
"""Matches the text after a path if the request concerns a part of the file."""


def find_file_action(request: str) -> str:
    """Return the action on a file with which ``request`` begins: ``add`` or ``edit`` for a change within the file;
    ``update``, ``create``, ``delete`` or ``move`` for the file as a whole; "" for other requests.
    """
    action, verb = find_requested_action(request)
    path = next(iter(find_paths(request)), "")
    if not list_target_paths(request) or action not in ("add", "create", "delete", "edit", "move"):
        return ""
    if _PUTS_FILE.match(request, verb):
        return "move"
    before = request[: request.index(path)]
    if action == "create":
        return "" if ABOUT.search(before) else action
    whole = _WHOLE_FILE.match(request, verb) if len(before) < verb and action in ("delete", "move") else None
    if whole and (not whole["pronoun"] or _NEEDS.search(before) or _are_useless(request, verb, whole["pronoun"])):
        return action
    is_name = action == "move" and (find_quoted(before[verb:]) or " to " in before[verb:])  # what the files contain
    if is_name or len(before) < verb or _INSIDE.search(before) or _PART.match(request, len(before) + len(path)):
        return "add" if action == "add" else "edit"
    return "update" if action in ("add", "edit") else action


def _are_useless(request: str, verb: int, pronoun: str) -> bool:
    """Return whether a request begins with files that are not needed. The ``pronoun`` after the verb then means these
    files."""
    paths = list_first_paths(request)
    end = request.rindex(paths[-1], 0, verb) + len(paths[-1])
    is_first = re.fullmatch(r"(?i)\W*(?:the\s+)?(?:files?\s+)?\W*", request[: request.index(paths[0])])
    is_plural = pronoun.lower() != "it"
    return bool(is_first and is_plural == (len(paths) > 1) and _IS_USELESS.fullmatch(request, end, verb))


def list_first_paths(request: str) -> list[str]:
    """Return the first path in a request, and the paths that follow it in a list."""
    paths, spans = find_paths(request), list[tuple[int, int]]()
    for path in paths:
        start = request.index(path, spans[-1][1] if spans else 0)
        if spans and not _AND.fullmatch(request[spans[-1][1] : start]):
            break
        spans.append((start, start + len(path)))
    return paths[: len(spans)]


def list_kept_paths(request: str) -> list[str]:
    """Return the paths that a request excludes from its action: "delete a.log, but keep b.log"."""
    kept, end = list[str](), 0
    for path in find_paths(request):
        start = request.index(path, end)
        is_next = kept != [] and _AND.fullmatch(request, end, start)
        instead = _INSTEAD.match(request, start + len(path))
        is_used = instead and asks_for(instead[1], "add", "delete", "edit", "move")
        if not is_used and (is_next or _KEEPS.search(request[max(start - MAX_BEFORE, 0) : start])):
            kept.append(path)
        elif kept:
            break
        end = start + len(path)
    return kept


def list_target_paths(request: str) -> list[str]:
    """Return the paths in a request, without those that must stay unchanged.

    If all must, they are returned nevertheless ("keep a.md short"), unless they are exceptions ("all except a.md").
    """
    paths = find_paths(request)
    kept = list_kept_paths(request)
    targets = [path for path in paths if path not in kept]
    if targets or not paths:
        return targets
    start = request.index(paths[0])
    return [] if _EXCLUDES.search(request[max(start - MAX_BEFORE, 0) : start]) else paths


def find_kept_values(request: str, arguments: JsonObject) -> list[str]:
    """Return the paths among a call's ``arguments`` that must stay unchanged, and such paths that its command deletes
    or moves away."""
    kept = {*find_paths(request)}.difference(list_target_paths(request))
    if not kept:
        return []
    texts = {name: value for name, value in arguments.items() if isinstance(value, str)}
    removed = {path for name in COMMAND for path in list_removed_paths(texts.get(name, ""))}
    named = {value for name, value in texts.items() if name not in _TEXTS and " " not in value}
    return sorted(
        path
        for path in kept
        if any(value == path or value.endswith(f"/{path}") for value in named | removed)
        or any(is_removed(path, each) for each in removed)
    )


def is_inside(path: str, request: str) -> bool:
    """Return whether the request only concerns something in the file, such as "the second line of a.md"."""
    return all(_INSIDE.search(before) for before in request.split(path)[:-1])
