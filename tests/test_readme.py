"""The README is true and short: its programs are run, its numbers and the tables of docs/ are made from the code."""

import inspect
import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import adapter
from adapter.cli.config import Config, read_toml
from adapter.conversation.guardrails.registry import GUARDRAILS
from adapter.core.events import ToolCall
from adapter.core.rejection_codes import REJECTION_REASONS
from adapter.core.repair_codes import REPAIRS
from adapter.parsing.formats import FORMATS
from tests.conversation.guardrails.test_engine import message_of
from tests.scripted_server import CHAT, as_json
from tests.server.test_wrap import CALL, completion
from tests.serving import serving

README_FILE = Path(__file__).parent.parent / "README.md"
README = README_FILE.read_text(encoding="utf-8")
DOCS = README_FILE.parent / "docs"
AGENT = (DOCS / "agent.md").read_text(encoding="utf-8")
MOST_LINES = 150


def test_the_python_example_runs(tmp_path, monkeypatch):
    """The library example is executed as it stands."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-project").mkdir()
    (tmp_path / "my-project" / "notes.txt").write_text("remember\n", encoding="utf-8")
    example = re.search(r"<!-- python: library -->\n```python\n(.*?)```", README, re.DOTALL)
    assert example is not None
    names: dict[str, Any] = {}
    exec(example.group(1), names)
    (result,) = names["results"]
    assert result.ok
    assert "remember" in result.content
    assert [event.name for event in names["events"] if isinstance(event, ToolCall)] == ["read_file"]


def test_the_server_and_the_wrapped_client_do_what_is_said(scripted, capsys):
    """Both in front of a server that only knows text: the command with a free port, the example as it stands."""
    pytest.importorskip("aiohttp", reason="needs the server: pip install 'toolcall-adapter[server]'")
    scripted.on(CHAT, as_json(200, completion(CALL)))
    command = re.search(r"<!-- command: serve -->\n```sh\nadapter serve --upstream (\S+)\n```", README)
    example = re.search(r"<!-- python: wrap -->\n```python\n(.*?)```", README, re.DOTALL)
    assert command is not None
    assert example is not None
    with serving(scripted.url) as url:
        for base_url in (scripted.url, url):
            exec(example.group(1).replace(command.group(1), base_url.removesuffix("/v1")), {})
            assert "name='read_file'" in capsys.readouterr().out


def formats_table() -> str:
    """The table of formats, from the first lines of their modules. `python -m tests.test_readme` writes it."""
    rows = ["| name | how calls are written | also called |", "|---|---|---|"]
    for name, entry in FORMATS.items():
        summary = (import_module(f"adapter.parsing.formats.{name}").__doc__ or "").split("\n")[0]
        summary = summary.replace("``", "`").replace("|", "\\|").rstrip(".")
        rows.append(f"| `{name}` | {summary} | {', '.join(entry.aliases)} |")
    return "\n".join(rows)


def conformance_table() -> str:
    """The outcomes that tests/test_canitoolcall.py holds the parser to; skips where the suite is not installed."""
    from tests import test_canitoolcall

    return test_canitoolcall.conformance_table()


def public_table() -> str:
    """The public names with the first sentences of their docstrings."""
    rows = ["| name | what it is |", "|---|---|"]
    for name in adapter.__all__:
        said = inspect.getdoc(getattr(adapter, name)) or ""
        sentence = re.split(r"(?<=[.:])\s", " ".join(said.split("\n\n")[0].split()))[0].rstrip(".:")
        rows.append(f"| `{name}` | {sentence.replace('``', '`')} |")
    return "\n".join(rows)


def guardrails_table() -> str:
    """Each by its name, with what it says first of an example."""
    said = {name: message_of(name) for name in GUARDRAILS}
    rows = ["| name | recognises | says, for example | by default | stops |", "|---|---|---|---|---|"]
    for name, each in GUARDRAILS.items():
        marks = "on" if each.is_default else "off", "yes" if each.stops else ""
        rows.append(f"| `{name}` | {each.recognises} | {said[name]} | {' | '.join(marks)} |")
    return "\n".join(rows)


def rejections_table() -> str:
    return _of_names("no call, because", REJECTION_REASONS)


def fixes_table() -> str:
    return _of_names("mended", REPAIRS)


def _of_names(title: str, said: Mapping[str, str]) -> str:
    rows = (f"| `{name}` | {text} |" for name, text in said.items())
    return "\n".join([f"| | {title} |", "|---|---|", *rows])


TABLES = {
    "guardrails": (DOCS / "guardrails.md", guardrails_table),
    "public": (DOCS / "api.md", public_table),
    "formats": (DOCS / "formats.md", formats_table),
    "conformance": (DOCS / "formats.md", conformance_table),
    "rejections": (DOCS / "no_call.md", rejections_table),
    "fixes": (DOCS / "no_call.md", fixes_table),
}
"""By name, the file that a table stands in and what makes it."""


def with_table(text: str, name: str) -> str:
    before, rest = text.split(f"<!-- table: {name} -->\n")
    _, after = rest.split("\n<!-- end -->", 1)
    return f"{before}<!-- table: {name} -->\n{TABLES[name][1]()}\n<!-- end -->{after}"


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_are_what_the_code_says(name):
    """A new format appears with all its names: run `python -m tests.test_readme` when this fails."""
    text = TABLES[name][0].read_text(encoding="utf-8")
    assert with_table(text, name) == text


def test_the_numbers_are_right():
    """Where the README counts formats, and what was read of the conformance suite."""
    assert f" {len(FORMATS)} formats" in README
    _, outputs, told, *_, detected = (
        cell.strip() for cell in conformance_table().splitlines()[-1].strip("|").split("|")
    )
    read_told, read_detected = told.partition("-")[0], detected.partition("-")[0]
    said = re.sub(r"\s+", " ", README)
    assert f"Of the {outputs} outputs of the public conformance suite" in said
    assert f"it reads {read_told} exactly, streamed or whole, with the format told, and {read_detected} with" in said


def test_it_is_short():
    """Read in five minutes; the rest is in docs/."""
    assert len(README.splitlines()) < MOST_LINES


def test_the_configuration_is_one(tmp_path):
    """Every table that there is, and no other; what follows shows other values."""
    example, *_ = re.findall(r"```toml\n(.*?)```", AGENT, re.DOTALL)
    file = tmp_path / "config.toml"
    file.write_text(example)
    assert read_toml(file, Config).model_fields_set == set(Config.model_fields)


if __name__ == "__main__":
    for name, (file, _) in TABLES.items():
        file.write_text(with_table(file.read_text(encoding="utf-8"), name), encoding="utf-8")
    README_FILE.write_text(re.sub(r" \d+ formats", f" {len(FORMATS)} formats", README), encoding="utf-8")
