"""Parse the common arguments of `adapter parse` without Typer. Importing Typer takes twice as long as importing the
parser."""

from __future__ import annotations

from collections.abc import Sequence

OPTIONS = {"--format": "format", "--dialect": "dialect", "--finish-reason": "finish_reason", "--policy": "policy"}


def parse_fast_arguments(words: Sequence[str]) -> dict[str, str | bool] | None:
    """Convert the words after ``adapter parse`` to arguments for `print_parse_result`. Return None if they need
    Typer."""
    arguments: dict[str, str | bool] = {}
    rest = iter(words)
    for word in rest:
        value = next(rest, None) if word in OPTIONS else word
        name = "as_json" if word == "--json" else OPTIONS.get(word, "file")
        if value is None or name in arguments or (value.startswith("-") and value != "-" and name != "as_json"):
            return None
        arguments[name] = name == "as_json" or value
    return arguments
