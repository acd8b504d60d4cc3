"""The files that a command deletes or moves away."""

import pytest

from adapter.conversation.guardrails.removing_commands import is_removed, list_removed_paths


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("rm a.txt b.txt", ["a.txt", "b.txt"]),
        ("rm -rf -- './my dir'", ["my dir"]),
        ("cd x && sudo rm -f a; ls b", ["a"]),
        ("mv a b c/", ["a", "b"]),
        ("/bin/rm a | tee b", ["a"]),
        ("del /q a.txt", ["a.txt"]),
        ("LANG=C unlink a", ["a"]),
        ("ls *.log | xargs rm", []),
        ("rm 'a", ["'a"]),
        ("mv", []),
        ("cp a b", []),
        ("echo rm a", []),
        ("", []),
    ],
)
def test_removed_paths_of_a_command(command, paths):
    assert [*list_removed_paths(command)] == paths


@pytest.mark.parametrize(
    ("path", "removed", "expected"),
    [
        ("a/b.txt", "a/b.txt", True),
        ("a/b.txt", "a", True),
        ("a/b.txt", "a/", True),
        ("a/b.txt", "a/*.txt", True),
        ("a/b.txt", ".", True),
        ("a/b.txt", "*", True),
        ("a/b.txt", "a/b", False),
        ("ab.txt", "a", False),
    ],
)
def test_path_inside_a_removed_one(path, removed, expected):
    assert is_removed(path, removed) is expected
