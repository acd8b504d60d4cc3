"""The list of commands in `adapter --help`."""

from tests.command_line import adapter


def test_no_sentence_is_cut_off():
    """In a terminal of 80 columns, each command has a whole sentence."""
    done = adapter("--help", env={"COLUMNS": "80"})
    commands = done.stdout.partition("Commands:\n")[2].splitlines()
    assert len(commands) > 20
    assert [line for line in commands if not line.endswith(".")] == []
    assert [line for line in commands if line.endswith("...")] == []
