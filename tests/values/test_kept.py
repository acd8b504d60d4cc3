"""What is kept stays within its bound, and what is asked for again is not made again."""

from __future__ import annotations

from adapter.values.kept import Kept


def test_the_oldest_go_first_and_what_is_used_stays():
    """The bound is on characters: of texts of four, four fit into sixteen; a fifth takes the place of one unused."""
    made: list[str] = []
    kept: Kept[str] = Kept(16)

    def ask(text: str) -> str:
        def make() -> str:
            made.append(text)
            return text.upper()

        return kept.of(text, make)

    asked = [each * 4 for each in "abcdaeab"]
    assert [ask(text) for text in asked] == [text.upper() for text in asked]
    assert "".join(text[0] for text in made) == "abcdeb"


def test_what_is_too_long_is_made_each_time_and_takes_nobody_s_place():
    kept: Kept[int] = Kept(7)
    numbers = iter(range(9))
    assert [kept.of(text, lambda: next(numbers)) for text in ("a", "too long", "too long", "a")] == [0, 1, 2, 0]


def test_the_same_text_for_another_purpose_is_another_value():
    kept: Kept[str] = Kept(9)
    assert kept.of("a", lambda: "first", "x") == "first"
    assert kept.of("a", lambda: "second", "y") == "second"
    assert kept.of("a", lambda: "new", "x") == "first"
