"""Requests to correct a misspelled word, and corrections."""

import pytest

from adapter.prompting.intent.spelling import find_misspelled_word, is_correction

TEXT = "# Travel\n\nYou will recieve one two mesage.\n"


@pytest.mark.parametrize(
    ("request_", "word"),
    [
        ('Correct the spelling of "recieve" in a.md', "recieve"),
        ("There is a typo in a.md: recieve", "recieve"),
        ('The word "recieve" in travel.md is misspelled, please correct it', "recieve"),
        ("In a.md ist ein Tippfehler: recieve", "recieve"),
        ('Fix the spelling of "recieve" and "mesage" in a.md', ""),
        ('Fix the typo "recieve" in a.md and add a title', ""),
        ("Fix the typos in a.md, like recieve", ""),
        ("Fix the typo in a.md", ""),
        ('Replace "recieve" in a.md', ""),
    ],
)
def test_misspelled_word_is_found_in_the_request(request_, word):
    assert find_misspelled_word(request_, TEXT) == word


@pytest.mark.parametrize(
    ("new", "is_correct"),
    [
        ("1. separate the eggs\n2. separate it\n", True),
        ("1. separate the eggs\n2. seperate it\n", False),
        ("1. Separate the eggs\n2. separate it\n", True),
        ("1. whip the eggs\n2. whip it\n", False),
        ("1. separate the egg\n2. separate it\n", False),
        ("1. separate the eggs\n", False),
    ],
)
def test_correction_changes_nothing_but_the_word(new, is_correct):
    assert is_correction("seperate", "1. seperate the eggs\n2. seperate it\n", new) is is_correct
