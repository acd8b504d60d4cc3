"""The index of formats, known before a format is loaded, matches them; `python -m tests.generate` writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from pprint import pformat
from typing import Any

from adapter import formats
from adapter.formats import ORDER, index
from adapter.formats.others import OTHERS
from adapter.reading.foreign import found
from adapter.reading.format import Format, Opener
from adapter.reading.tables import reasoning_of, tables_for
from adapter.reading.untagged_json import UntaggedJson

FILE = Path(index.__file__)
HEAD = '"""What is known of the formats before one is loaded. Made by ``python -m tests.generate``."""'
OTHER_FILES = {"index", "others", "parser"}
MEANT = {
    "NAMES": "All formats.",
    "ALIASES": "The format that each other name is for.",
    "OPENERS": "The first format that opens a call with a marker, by the marker in lower case.",
    "KEEPING_SPACE": "The markers before which white space is content.",
    "STRAYS": "Closing markers that are never content on their own.",
    "ENDS": "What ends a turn, or a part of it.",
    "NEXT_TURNS": "What begins somebody else's turn.",
    "RESULTS": "What begins the result of a call.",
    "REASONING": "What closes reasoning, by what opens it.",
    "TOKENS": "What a tokenizer takes for one token, in its own letter case.",
    "BY_NAMES": "Formats whose markers depend on the names of the session's tools.",
    "STRIPPED": "Formats that read a call whose opening markers were stripped, the first of those with one reader.",
    "BARE": "Formats that call without markers, and not in JSON, the first of those with one reader.",
}


def in_the_folder() -> dict[str, Format]:
    """Each format of the folder by its file's name, in the order in which they are tried."""
    found = sorted({module.name for module in iter_modules(formats.__path__)} - OTHER_FILES)
    names = [*(name for name in ORDER if name in found), *(name for name in found if name not in ORDER)]
    return {name: import_module(f"adapter.formats.{name}").FORMAT for name in names}


def said(entries: dict[str, Format]) -> dict[str, Any]:
    """What the index should say of them."""
    openers = {
        opener.marker.lower(): (name, opener)
        for name, entry in reversed(entries.items())
        for opener in reversed(entry.openers)
    }
    return {
        "NAMES": tuple(sorted(entries)),
        "ALIASES": {alias: name for name, entry in entries.items() for alias in entry.aliases},
        "OPENERS": {marker: name for marker, (name, _) in sorted(openers.items())},
        "KEEPING_SPACE": tuple(sorted(marker for marker, (_, opener) in openers.items() if opener.keeps_space)),
        "STRAYS": lowered(marker for entry in entries.values() for marker in entry.strays),
        "ENDS": lowered(marker for entry in entries.values() for marker in (*entry.ends, *entry.channels)),
        "NEXT_TURNS": lowered(marker for entry in entries.values() for marker in entry.next_turns),
        "RESULTS": lowered(marker for entry in entries.values() for marker in entry.results),
        "REASONING": dict(sorted(reasoning_of(tuple(entries.values())).items())),
        "TOKENS": tuple(
            sorted({token for entry in entries.values() for token in (*entry.special_tokens, *entry.stops)})
        ),
        "BY_NAMES": tuple(name for name, entry in entries.items() if entry.openers_for is not None),
        "STRIPPED": first_with(entries, lambda entry: entry.stripped),
        "BARE": first_with(entries, lambda entry: None if isinstance(entry.bare, UntaggedJson) else entry.bare),
    }


def lowered(markers: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({marker.lower() for marker in markers}))


def first_with(entries: dict[str, Format], reader: Callable[[Format], object]) -> tuple[str, ...]:
    """The formats that have one, but those whose reader an earlier one has."""
    first: dict[object, str] = {}
    for name, entry in entries.items():
        if (read := reader(entry)) is not None:
            first.setdefault(read, name)
    return tuple(first.values())


def written(entries: dict[str, Format]) -> str:
    """The file as it should be."""
    show = partial(pformat, width=96, compact=True, sort_dicts=False)
    parts = [f'{name} = {show(value)}\n"""{MEANT[name]}"""' for name, value in said(entries).items()]
    return "\n".join([HEAD, "", "# fmt: off", "", *parts]) + "\n"


def test_the_file_is_what_the_formats_say():
    """Whatever stands in the folder."""
    assert FILE.read_text(encoding="utf-8") == written(in_the_folder()), "run python -m tests.generate"


NAMES = ("read_file", "think", "tool_call", "function_call", "actions")


def opened_by(entries: Iterable[Format], names: tuple[str, ...]) -> dict[str, Opener]:
    """Of several openers with one marker, the first."""
    each = (
        opener
        for entry in entries
        for opener in (*entry.openers, *(entry.openers_for(names) if entry.openers_for else ()))
    )
    first: dict[str, Opener] = {}
    for opener in each:
        first.setdefault(opener.marker.lower(), opener)
    return first


def test_the_others_are_all_formats():
    """By their openers and readers, also with tools that are called as an element of some format."""
    entries = tuple(in_the_folder().values())
    for names in ((), NAMES):
        expected, openers = opened_by(entries, names), OTHERS.openers(names)
        assert openers.keys() == expected.keys()
        for marker, opener in openers.items():
            assert opener.keeps_space == expected[marker].keeps_space, marker
            if marker in index.OPENERS and marker.strip("< >") not in names:
                assert found(opener.read) is expected[marker].read, marker
    assert {found(read) for read in OTHERS.stripped} == {entry.stripped for entry in entries} - {None}
    assert OTHERS.strays == {marker.lower() for entry in entries for marker in entry.strays}


def test_a_format_that_shares_a_reader_does_not_read_twice():
    """What another format has at the told one's marker is asked only where it is another reader."""
    for entry in in_the_folder().values():
        own, tables = opened_by([entry], ()), tables_for((entry,), (), OTHERS)
        for marker, opener in own.items():
            is_shared = found(OTHERS.openers(())[marker].read) is opener.read
            assert (tables.openers[marker].read is opener.read) == is_shared, (entry.name, marker)
