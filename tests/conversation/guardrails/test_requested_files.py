"""The action and the files that a request asks for, from its words."""

import pytest

from adapter.conversation.guardrails.requested_files import (
    find_file_action,
    list_kept_paths,
    list_target_paths,
)


@pytest.mark.parametrize(
    ("request_", "action"),
    [
        ("Fix the typo in a.md", "edit"),
        ("In a.json, set the port to 9090.", "edit"),
        ("Please rename the function f to g in a.py and in b.py", "edit"),
        ("Remove the second line of a.md", "edit"),
        ("a.md is wrong. Correct it.", "edit"),
        ("We no longer need a.tmp. Remove it.", "delete"),
        ("I don't want a.tmp in here any longer, remove it", "delete"),
        ("a.tmp is old; please delete the file", "delete"),
        ("a.tmp can go, delete it", "delete"),
        ("a.tmp and b.tmp can both go, delete them please", "delete"),
        ("The files a.tmp, b.tmp and c.tmp are no longer needed. Please delete them all.", "delete"),
        ("ba.tmp, a.tmp: delete both", "delete"),
        ("a.csv and b.csv list old prices, delete them", "edit"),
        ("a.csv lists old prices, delete them", "edit"),
        ("In a.csv and b.csv the prices are old, delete them", "edit"),
        ("a.csv is old, delete them", "edit"),
        ("Nobody reads a.md. Move it to old/a.md", "move"),
        ("a.md has a table. Remove its last row.", "edit"),
        ("Delete a.md's last line", "edit"),
        ("a.md has a table. Remove it.", "edit"),
        ("The function f in a.py is unused. Delete it.", "edit"),
        ("We no longer use a.py. Remove it from the list in b.md", "edit"),
        ("Put README.md in quotes", "update"),
        ("Move `a.py` function f to b.py", "edit"),
        ("Put report.csv into the folder archive.", "move"),
        ("Please put `b/report.csv` in archive/", "move"),
        ("Put a.png, b.png and the file `c.png` into the folder images", "move"),
        ("Put 5 into a.ini", "add"),
        ("Fill in a.txt: replace {{name}} with Anna", "edit"),
        ("Add a line to a.md", "add"),
        ("Put linux on the list in a.yml, after windows", "add"),
        ("Update a.md", "update"),
        ("Rename a.md to b.md", "move"),
        ("Delete the file a.md", "delete"),
        ("Make a new file b/a.md", "create"),
        ("Save the sum to a.md", "create"),
        ("Write a summary of a.md", ""),
        ("Make a plan for a.md", ""),
        ("Summarize a.md", ""),
        ("a.md is long. Summarize it.", ""),
        ("Which setting in a.md should I change?", ""),
        ("Could you update a.md?", "update"),
        ("Verschieb die beiden Fotos (a.jpg, b.jpg) in den Ordner urlaub", "move"),
        ("Bitte die Funktion f in g umbenennen, sie kommt in a.py und b.py vor.", "edit"),
        ("Lösche die zweite Zeile aus a.md", "edit"),
        ("a.log löschen", "delete"),
        ("a.log ist alt. Lösche die Datei.", "delete"),
        ("borra el archivo viejo.bak por favor", "delete"),
        ("Supprime la deuxième ligne de a.md", "edit"),
        ("renomeia a variável x para y em a.py", "edit"),
        ("Ajoute une ligne à a.csv : x,y", "add"),
        ("Añade pan a a.txt", "add"),
        ("Add a a.md", "update"),
        ("en a.md pone instalacion, corrígelo por favor", "edit"),
        ("a.md non serve più, puoi eliminarlo?", "delete"),
        ("Bump the version in a.toml to 2", "edit"),
        ("¿Qué dice el modelo en a.md?", ""),
        ("a.md es largo, resúmelo", ""),
        ("Erstelle eine Zusammenfassung von a.md", ""),
        ("Could you say how to update a.md?", ""),
        ("Fix my sentence: I has a dog", ""),
        ("", ""),
    ],
)
def test_action_on_a_file_is_found_in_a_request(request_, action):
    assert find_file_action(request_) == action


@pytest.mark.parametrize(
    ("request_", "kept"),
    [
        ("Delete the file logs/old.log but keep logs/new.log.", ["logs/new.log"]),
        ("Delete a.txt, not b.txt", ["b.txt"]),
        ("Delete all logs except for a.log and b.log; c.log too", ["a.log", "b.log"]),
        ("Rename greet to hello in a.txt, but not in b.txt", ["b.txt"]),
        ("Move a.md to old/a.md. Don't touch `b.md`.", ["b.md"]),
        ("Lösche a.txt, aber nicht b.txt", ["b.txt"]),
        ("Supprime a.txt mais garde b.txt", ["b.txt"]),
        ("a.txt is not needed, delete it", []),
        ("Keep only the first line of a.txt", []),
        ("Leave a note in a.txt", []),
        ("keep a.txt", ["a.txt"]),
        ("Don't delete a.txt, move it to old/a.txt", []),
        ("Keep a.txt, but rename it to b.txt", []),
        ("Keep a.txt, I need it", ["a.txt"]),
        ("Delete all files but a.txt", ["a.txt"]),
        ("Lösche alles außer a.txt", ["a.txt"]),
        ("Don't forget to delete a.txt", []),
    ],
)
def test_files_that_a_request_keeps_are_found(request_, kept):
    assert list_kept_paths(request_) == kept


def test_exception_is_no_target():
    """In other requests, a single path is the target, even after "keep"."""
    assert list_target_paths("Delete everything except a.txt") == []
    assert find_file_action("Delete everything except a.txt") == ""
    assert list_target_paths("Keep a.txt short") == ["a.txt"]
