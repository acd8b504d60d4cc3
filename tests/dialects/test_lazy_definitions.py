"""The tool definitions that parsing uses match the dialects' classes; `python -m tests.generate` writes them."""

from __future__ import annotations

import json
from pathlib import Path

from adapter.dialects import DEFINED_FIELDS, get_dialect, list_dialect_names, load_tools_for_parsing

FILE = Path(__file__).parent.parent.parent / "adapter" / "dialects" / "definitions.json"
KEPT = [name for name in list_dialect_names() if name != "promptly"]
"""Promptly's tools are the user's files."""


def written() -> str:
    """Return the correct file: one line per tool, without empty fields."""
    dialects = []
    for name in KEPT:
        rows = [{field: getattr(tool, field) for field in DEFINED_FIELDS} for tool in get_dialect(name).tools.values()]
        lines = [json.dumps({field: value for field, value in row.items() if value}) for row in rows]
        dialects.append(f"{json.dumps(name)}: [\n" + ",\n".join(lines) + "\n]")
    return "{\n" + ",\n".join(dialects) + "\n}\n"


def test_a_dialect_of_files_has_no_row():
    """A dialect from files has no row, because its tools are read from these files."""
    assert "promptly" not in json.loads(FILE.read_text())
    assert load_tools_for_parsing("promptly") == get_dialect("promptly").tools


def test_the_tools_match_as_those_of_the_classes_do():
    for name in KEPT:
        kept, full = load_tools_for_parsing(name), get_dialect(name).tools
        assert all(tool.validate is None for tool in kept.values())
        assert list(kept) == list(full)
        for tool in full.values():
            for alias in (tool.name, *tool.aliases):
                one, other = kept.match(alias), full.match(alias)
                assert (one and one.name) == (other and other.name)
            assert kept[tool.name].properties == tool.properties
            assert kept[tool.name].argument_aliases.keys() == tool.argument_aliases.keys()
