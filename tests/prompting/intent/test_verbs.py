"""The action that a request begins with, and whether it is a question."""

import pytest

from adapter.prompting.intent.verbs import find_requested_action, is_question


@pytest.mark.parametrize(
    ("request_", "action"),
    [
        ("Fix the typo in a.md.", "edit"),
        ("In a.md, replace x by y", "edit"),
        ("Can you fix the typo in a.md?", "edit"),
        ("Could you please append this to a.md? The entry is: x", "add"),
        ("Is it done? Then delete a.txt.", ""),
        ("Is it done? Delete a.txt then.", "delete"),
        ("Delete a.txt?", ""),
        ("How do I delete a.txt?", ""),
        ("Bitte ändere den Port in a.ini", "edit"),
        ("in a.ini den Port auf 80 ändern", "edit"),
        ("a.ini ist falsch, bitte korrigieren", "edit"),
        ("Kannst du bitte a.txt anlegen? Darin steht: x", "create"),
        ("Füge eine Zeile zu a.md hinzu", "add"),
        ("Ajoutez une ligne à a.md", "add"),
        ("Renommer la fonction f en g dans a.py", "move"),
        ("borra el archivo viejo.bak por favor", "delete"),
        ("Sposta a.txt in vecchi/", "move"),
        ("Por favor, substitua x por y em a.md", "edit"),
        ("Soll ich a.txt löschen?", ""),
        ("Quite a few lines of a.md are wrong.", ""),
        ("Movies and books are in a.md.", ""),
        ("Borrowed from b.md.", ""),
        ("Can you tell me the port in a.ini?", ""),
        ("Can you check a.ini?", "look"),
        ("The name load is misleading. Call it read_row instead, in a.py", "move"),
        ("Call the API", "look"),
    ],
)
def test_requested_action_is_the_verb_of_a_request_not_of_a_question(request_, action):
    """A polite request may end with a question mark. In German, the verb may be the last word."""
    assert find_requested_action(request_)[0] == action


@pytest.mark.parametrize(
    ("request_", "is_asked"),
    [
        ("Which port is set in a.ini?", True),
        ("Can you tell me the port in a.ini?", True),
        ("Can you check whether a.ini sets a port?", True),
        ("Read a.ini. What is the port?", True),
        ("Weißt du, wann sie offen haben? Müsste in a.txt stehen.", True),
        ("何時に開きますか？a.txtを見て", True),
        ("Can you fix the typo in a.md?", False),
        ("Why does a.py fail? Fix it.", False),
        ("Kannst du a.txt anlegen? Da soll Milch drinstehen.", False),
        ("Tu peux changer le port dans a.ini? Il faut 80.", False),
        ("Load https://a.b/c?d=e now", False),
        ('Replace "why?" with "how" in a.md', False),
        ("", False),
    ],
)
def test_question_asks_something_and_no_change(request_, is_asked):
    assert is_question(request_) == is_asked


@pytest.mark.parametrize("text", ["delete x " * 100_000, "delete x? " * 100_000, "? " * 200_000, "can you " * 100_000])
def test_hostile_requests_are_read_in_linear_time(text):
    """Quadratic time would take minutes."""
    is_question(text)
    find_requested_action(text)
