"""Hidden characters become visible: all of Unicode by its properties, and questions as a person sees them."""

from __future__ import annotations

import json
import random
import unicodedata
from functools import cache

import pytest
import regex

from adapter.cli.agent_console import Console
from adapter.core.text.diffs import render_unified_diff
from adapter.core.text.display_escaping import collapse_blanks, dump_for_display, escape_for_display
from adapter.tools.operations import RunCommand, WriteText
from adapter.tools.operations.permissions import ApprovalRequest

IGNORED = regex.compile(r"\p{Default_Ignorable_Code_Point}")
OF_EMOJI = {"\ufe0f", "\u200d"}


@cache
def all_hidden() -> list[str]:
    """Return every hidden character, by its properties."""
    return [
        character
        for character in map(chr, range(0x110000))
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        or IGNORED.match(character)
        or character == "\u2800"
    ]


def test_every_hidden_character_is_spelled_out():
    """By category, over all code points. JSON remains valid JSON."""
    assert len(all_hidden()) > 6_000
    for character in all_hidden():
        assert escape_for_display(f"a{character}b") not in (f"a{character}b", "ab"), ascii(character)
        assert escape_for_display(character, keep=character) == character
        if character != "\n":
            assert character not in dump_for_display(character), ascii(character)
        assert json.loads(dump_for_display(character)) == character


def test_every_other_character_stays():
    """Letters, marks, spaces of any width, private use. (Characters that this version of Python does not know are not
    tested.)
    """
    hidden = {*all_hidden(), *(chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) == "Cn")}
    others = [character for character in map(chr, range(0x110000)) if character not in hidden]
    assert escape_for_display("".join(others)) == "".join(others)


@pytest.mark.parametrize("emoji", ["❤️", "👨‍👩‍👧‍👦", "👍🏽", "👩🏽‍💻", "1️⃣", "🇩🇪", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🏳️‍🌈"])
def test_emoji_of_several_characters_stay(emoji):
    """They are one character on the screen."""
    assert escape_for_display(f"a {emoji}b") == f"a {emoji}b"


@pytest.mark.parametrize(
    "text",
    ["a\ufe0f", "❤\ufe0f\ufe0f", "a\u200db", "👍\u200d", "🏴" + "".join(chr(0xE0000 + ord(c)) for c in "secret\x7f")],
)
def test_escape_for_display_escapes_invalid_emoji_sequences(text):
    """A selector after a letter, a second selector, a joiner without neighbors, a flag that contains a message."""
    assert not hidden_in(escape_for_display(text)) - OF_EMOJI
    assert escape_for_display(text) != text


def hidden_in(text: str) -> set[str]:
    return set(text) & set(all_hidden()) - {"\n", "\t"}


def test_hostile_diffs_and_commands_hide_nothing(capsys):
    """200 questions with hidden characters anywhere in the old text, the new text, the path and the command."""
    chance = random.Random(20)
    for number in range(200):
        hidden = chance.sample(all_hidden(), 5)
        before, after, path = (
            "".join(chance.choice([*hidden, "a", " ", "\n", "é"]) for _ in range(60)) for _ in range(3)
        )
        diff = render_unified_diff(before, after, escape_for_display(path))
        change = ApprovalRequest("write", WriteText("a", after), "write", f"write {path}", diff, paths=("a",))
        command = ApprovalRequest(
            "run", RunCommand(after), "execute", f"run in .: {escape_for_display(after, keep=chr(10))}", command=after
        )
        console = Console()
        console.ask(change)
        console.ask(command)
        shown = capsys.readouterr().err
        assert not hidden_in(shown), number
        flat = "".join(shown.split())
        for character in hidden_in(after):
            assert escape_for_display(character) in flat, ascii(character)


def test_the_end_of_a_question_is_seen(capsys):
    """Blank lines do not move it out of sight, and it is repeated after a long command."""
    for filling in (" " * 5_000, "\n" * 5_000, "\t " * 900, "\n \n" * 500, "\u3000" * 500, "x" * 5_000 + "\n"):
        line = f"echo harmless{filling}; touch owned"
        Console().ask(
            ApprovalRequest(
                "run", RunCommand(line), "execute", f"run in .: {escape_for_display(line, keep=chr(10))}", command=line
            )
        )
        shown = capsys.readouterr().err
        assert shown.count("touch owned") == (2 if len(line) > 1_000 else 1)
        assert len(shown.split("\n")) < 120
    assert collapse_blanks("a" + " " * 5_000 + "b") == "a [... 5000 blanks ...] b"
    assert collapse_blanks("a" + "\n+" * 20 + "\nb").split("\n")[1] == "[... 20 empty lines ...]"
    assert collapse_blanks("    indented\n\n  x") == "    indented\n\n  x"
