"""Recognize actions, such as reading or deleting, by verbs in requests and tool names."""

from __future__ import annotations

import re
from functools import lru_cache

from adapter.core.text.word_stems import STOP_WORDS, split_words, stem_word, stem_words

_TABLE = """
read: cat read view / load open
look: ask browse calculate check compute convert count describe detect diff dir estimate exists explain fetch find
 forecast get glob grep head info inspect is list locate look lookup ls measure query retrieve scan search show stat
 status summarize tail track translate validate verify weather / access analyze call collect download examine explore
 gather inspect investigate proceed review test try use
add: add append insert put
create: create save write / define make new register schedule store upsert
edit: apply edit patch replace set update / adjust bump change correct decrease disable enable fill fix increase lower
 modify raise reduce swap switch
move: move rename
delete: delete drop remove clear / destroy discard erase purge trash unlink wipe clean free rid gone
reset: reset / revert rollback restore undo
publish: post push upload / deploy publish release send share ship submit sync
stop: cancel stop / abort kill terminate end quit
close: close / off reboot restart shutdown
uninstall: / format force overwrite revoke truncate uninstall
buy: book order / buy charge checkout pay purchase refund transfer
run: commit execute install pop run send start toggle turn
"""
"""Verbs by action. Verbs after a slash are often nouns or adjectives, so they do not prove that a tool changes data."""


def _parse_table(table: str) -> list[tuple[str, str]]:
    lines = (line.partition(": ") for line in table.replace("\n ", " ").strip().splitlines())
    return [(name, verbs) for name, _, verbs in lines]


_LINES = _parse_table(_TABLE)
ACTIONS = {name: frozenset(verbs.replace("/", "").split()) for name, verbs in _LINES}
_SAME_ACTIONS = {"add": "edit", "look": "read"}
_STEMS_TABLE = """
read: lees legg lies lis montr mostr muestr pokaż przeczytaj toon zeig
look: comprueb controleer controll erklär explic expliqu fass podsumuj prüf resum riassum résum spieg sprawdź überprüf
 verific vérifi wyjaśnij
add: acrescent adicion aggiung agreg ajout anhäng añad dodaj dopisz eintrag ergänz füg hinzufüg toevoeg trag voeg
create: aanmak anleg cre cré cri enregistr erstell guarda maak napisz salva sauvegard schreib schrijf speicher stwórz
 utwórz zapisz
edit: änder ausfüll cambi chang correg corrig corrij ersetz füll korrigier mets modifi modific mud popraw preench
 reemplac reemplaz rellen rempl remplac remplis riemp setz sostituisc substitu verander vervang vul wijzig wypełn zamień
 zmień
move: benenn déplac hernoem mov muev przenieś renombr renome renomm rinomin spost umbenenn verplaats verschieb
delete: apag borr cancell effac elimin entfern exclu lösch quita rimuov skasuj supprim usuń verwijder
"""
_ENGLISH = {verb: name for name, verbs in reversed(ACTIONS.items()) for verb in verbs}
_FOREIGN = {stem: name for name, stems in _parse_table(_STEMS_TABLE) for stem in stems.split()}
"""Maps stems of German, French, Spanish, Italian, Portuguese, Dutch and Polish verbs to the actions that they
request."""
_UNACCENTED = str.maketrans("áéíóú", "aeiou")
_ENDINGS = frozenset(["", "a", "ar", "are", "e", "en", "er", "ere", "es", "ez", "i", "ia", "ir", "ire", "n", "r"])
READS = ("read", "look")
"""Actions that do not change any data."""
_READING = frozenset(verb for name, verbs in _LINES if name in READS for verb in verbs.partition("/")[0].split())
_CHANGING = frozenset(verb for name, verbs in _LINES if name not in READS for verb in verbs.partition("/")[0].split())
_STEMS = [frozenset(map(stem_word, verbs)) for verbs in ACTIONS.values()]
VERB_STEMS = frozenset().union(*_STEMS)
_HARMLESS = {"clean", "end", "free", "off", "order", "restore", "send", "share", "submit", "sync", "undo"}
_DESTRUCTIVE = (
    frozenset().union(*(ACTIONS[name] for name in ("delete", "reset", "publish", "stop", "uninstall", "buy")))
    - _HARMLESS
)
"""Verbs of tools whose calls cannot be undone."""
_BEGINNING = re.compile(
    r"""(?:^|[.:;!?]\s+|\n|,\s+(?:(?:and|so)\s+)?(?!put)(?=(?:please\s+)?\w+\s+(?:it|that|them|this)\b))
    \s*(?P<polite>(?:can|could|will|would)\s+you\s+)?
    (?:(?:please|bitte|por\s+favor)[, ]+|(?:in|dans|en|em)\s\S+\s)?(?P<verb>[^\W\d_]+)(?=\s)""",
    re.IGNORECASE | re.VERBOSE,
)
"""Matches a sentence's first word, after "can you", "please" or "in a.md, ", and a verb that has a pronoun as its
object and follows a comma: "a.md is outdated, delete it"."""
_RENAMES = re.compile(r"call\s+(?:it|them|this|that)\s", re.IGNORECASE)
_ENCLITIC = re.compile(r"([^\W\d_]{3,}?)(?:me|te|se|nos)?-?l[aeo]s?(?!\w)", re.IGNORECASE)
"""Matches a verb with its object as a pronoun, in Spanish, Italian or Portuguese: corrígelo."""
_LAST_VERB = re.compile(r"([^\W\d_]+n)(?=\s*(?:[.,;:!?\n]|\Z))")
"""Matches a word that may be an infinitive at the end of a German sentence."""
MAX_BEGINNING = 400
"""Number of characters at the start of a request that are searched for its verb."""
_SENTENCE_END = re.compile(r"[.!;\n](?=\s)|[?？](?=\s|\Z)")
_ASKS = re.compile(r"\w[?](?=\s)|？|[?]\s*\Z")
_POLITE = re.compile(
    r"""\b(?:(?:can|could|will|would)\s+you|please|bitte|(?:kannst|könntest|würdest)\s+du|(?:können|könnten|würden)\s+sie
    |(?:peux|pourrais)[- ]tu|tu\s+(?:peux|pourrais)|(?:pouvez|pourriez)[- ]vous|s['’]il\s+(?:te|vous)\s+pla[iî]t
    |por\s+favor|puedes?|podrías?|puoi|potresti|per\s+(?:favore|piacere)|podes?|poderias?)\b
    |ください|もらえ|请|帮我|주세요|줄래""",
    re.IGNORECASE | re.VERBOSE,
)
"""Matches words of polite requests, which may end with a question mark."""


def sounds_like_change(name: str) -> bool:
    """Return whether a tool probably changes something, according to the verbs in its name."""
    words = set(split_words(name))
    return not words & _READING or bool(words & _CHANGING)


def sounds_destructive(name: str) -> bool:
    """Return whether a tool probably does something that cannot be undone, according to the verbs in its name."""
    return not _DESTRUCTIVE.isdisjoint(split_words(name))


@lru_cache(maxsize=1024)  # guardrails check all earlier calls
def sounds_like(name: str, *actions: str) -> bool:
    """Return whether a tool's name has a verb for one of ``actions``."""
    words = split_words(name)
    return any(not ACTIONS[action].isdisjoint(words) for action in actions)


def act_alike(name: str, other: str) -> bool:
    """Return whether two tools may do the same thing, according to the verbs in their names."""
    mine, others = _list_actions(name), _list_actions(other)
    return not mine or not others or not mine.isdisjoint(others)


def _list_actions(name: str) -> set[str]:
    return {_SAME_ACTIONS.get(action, action) for action in ACTIONS if sounds_like(name, action)}


def find_related_stems(text: str) -> set[str]:
    """Return the stems of all verbs that describe the same action as a verb in ``text``."""
    found = set(stem_words(text))
    return {verb for verbs in _STEMS if not verbs.isdisjoint(found) for verb in verbs}


def find_requested_action(request: str) -> tuple[str, int]:
    """Return the action whose verb begins a sentence of ``request``, and the verb's index, or "" and 0.

    In German, the verb may also be the last word. In Spanish, a verb with its object as a pronoun (corrígelo) may be
    anywhere. The index is then 0. Questions do not count, except polite requests: "Can you fix a.md?".
    """
    for match in _BEGINNING.finditer(request, 0, MAX_BEGINNING):
        action = "move" if _RENAMES.match(request, match.start("verb")) else _find_action(match["verb"].lower())
        if action and (match["polite"] or not _is_asked(request, match.end())):
            return action, match.start("verb")
    for match in _LAST_VERB.finditer(request, 0, MAX_BEGINNING):
        action = _find_foreign_action(match[1].lower())
        if action and (_POLITE.search(request) or not _is_asked(request, match.end())):
            return action, 0
    for match in _ENCLITIC.finditer(request, 0, MAX_BEGINNING):
        verb = match[1].lower().translate(_UNACCENTED)
        action = _find_foreign_action(match[1].lower()) or _find_foreign_action(verb)
        if action and (_POLITE.search(request) or not _is_asked(request, match.end())):
            return action, 0
    return "", 0


def asks_for(text: str, *actions: str) -> bool:
    """Return whether any word of ``text`` is a verb for one of ``actions``."""
    return any(_find_action(word) in actions for word in re.findall(r"[^\W\d_]+", text.lower()))


def _find_action(verb: str) -> str:
    return _ENGLISH.get(verb) or _find_foreign_action(verb)


def _find_foreign_action(verb: str) -> str:
    ends = (end for end in range(len(verb), max(len(verb) - 4, 1), -1) if verb[end:] in _ENDINGS)
    return next((_FOREIGN[verb[:end]] for end in ends if verb[:end] in _FOREIGN), "")


def _is_asked(request: str, start: int) -> bool:
    """Return whether the sentence that contains the index ``start`` is a question."""
    end = _SENTENCE_END.search(request, start, start + MAX_BEGINNING)
    return end is not None and end[0] in "?？"


def is_question(request: str) -> bool:
    """Return whether the user asks a question instead of requesting a change.

    A question ends ``request``, or is in a request without polite words such as "please" and "could you".
    """
    if find_requested_action(request)[0] not in ("", *READS):
        return False
    return request.rstrip().endswith(("?", "？")) or (bool(_ASKS.search(request)) and not _POLITE.search(request))


def is_stop_word(word: str) -> bool:
    """Return whether a word in a request is a stop word or a known verb, and therefore not a value."""
    return word in STOP_WORDS or any(word in verbs for verbs in ACTIONS.values())
