"""The README is true: its commands are run and its outputs compared."""

import inspect
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

import adapter
from adapter.commands.cli import make_app
from adapter.commands.config import Config, read_toml
from adapter.conversation.guardrails.catalogue import GUARDRAILS
from adapter.formats import FORMATS
from adapter.values.events import ToolCall
from tests.conversation.guardrails.test_guardrails import message_of
from tests.scripted_server import CHAT, as_json
from tests.server.test_wrap import CALL, completion
from tests.serving import serving

README_FILE = Path(__file__).parent.parent / "README.md"
README = README_FILE.read_text(encoding="utf-8")
DOCS = README_FILE.parent / "docs"
AGENT, EDIT = ((DOCS / name).read_text(encoding="utf-8") for name in ("agent.md", "edit.md"))
PAGES = [README_FILE, README_FILE.parent / "SECURITY.md", *sorted(DOCS.glob("*.md"))]


def consoles(text: str) -> list[str]:
    return re.findall(r"```console\n(.*?)```", text, re.DOTALL)


def sessions(block: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output shown below it."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def run(command: str, folder: Path) -> str:
    words = shlex.split(command)
    assert words[0] == "adapter", command
    done = subprocess.run(
        [sys.executable, "-m", "adapter", *words[1:]],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_first_example_prints_what_it_shows(tmp_path):
    """Raw text in, structured call out: `cat` shows the file that `adapter parse` reads."""
    (_, text), (command, shown) = sessions(consoles(README)[0])
    (tmp_path / "answer.txt").write_text(text.removesuffix("\n"), encoding="utf-8")
    assert run(command, tmp_path) == shown


def test_the_explanation_prints_what_it_shows(tmp_path):
    """What each piece of the text was taken for."""
    (_, text), (command, shown) = sessions(consoles(README)[2])
    (tmp_path / "said.txt").write_text(text, encoding="utf-8")
    assert run(command, tmp_path) == shown


@pytest.mark.model
def test_the_demo_prints_what_it_shows(tmp_path, real_weights):
    """The built-in model really edits the file, as shown."""
    (command, shown) = sessions(consoles(README)[1])[0]
    assert run(command, tmp_path) == shown


def test_the_edit_and_its_undo_print_what_they_show(tmp_path):
    """Several files as one change, and back."""
    (_, text), (edit, changed), (undo, undone) = sessions(consoles(EDIT)[0])
    (tmp_path / "answer.patch").write_text(text, encoding="utf-8")
    (tmp_path / "settings.ini").write_text("[server]\nport = 8000\n", encoding="utf-8")
    assert run(edit, tmp_path) == changed
    assert (tmp_path / "docs" / "ports.md").exists()
    assert run(undo, tmp_path) == undone
    assert (tmp_path / "settings.ini").read_text(encoding="utf-8") == "[server]\nport = 8000\n"
    assert not (tmp_path / "docs").exists()


def test_the_python_example_runs(tmp_path, monkeypatch):
    """The library example is executed as it stands."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-project").mkdir()
    (tmp_path / "my-project" / "notes.txt").write_text("remember\n", encoding="utf-8")
    example = re.search(r"```python\n(.*?)```", README, re.DOTALL)
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
        summary = (import_module(f"adapter.formats.{name}").__doc__ or "").split("\n")[0]
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


TABLES = {
    "guardrails": (DOCS / "guardrails.md", guardrails_table),
    "public": (DOCS / "api.md", public_table),
    "formats": (DOCS / "formats.md", formats_table),
    "conformance": (README_FILE, conformance_table),
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


def test_the_number_of_formats_is_right():
    """Where the README counts them."""
    assert f" {len(FORMATS)} formats" in README


def test_the_configuration_is_one(tmp_path):
    """Every table that there is, and no other; what follows shows other values."""
    example, *_ = re.findall(r"```toml\n(.*?)```", AGENT, re.DOTALL)
    file = tmp_path / "config.toml"
    file.write_text(example)
    assert read_toml(file, Config).model_fields_set == set(Config.model_fields)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_options_named_in_the_text_exist(page):
    """Every `adapter COMMAND --option` in code that a page shows is one."""
    shown = re.findall(r"```(?:sh|console)\n.*?```|`adapter [^`]*`", page.read_text(encoding="utf-8"), re.DOTALL)
    commands = typer.main.get_command(make_app()).commands  # type: ignore[attr-defined]  # a group, of the click inside typer
    for name, rest in re.findall(r"\badapter ([a-z]+)(.*)", "\n".join(shown).replace("\\\n", " ")):
        assert name in commands, name
        inner = [commands[name], *getattr(commands[name], "commands", {}).values()]
        known = {word for each in inner for option in each.params for word in (*option.opts, *option.secondary_opts)}
        assert set(re.findall(r"(?<![\w'-])--[a-z][a-z-]+", rest)) <= known | {"--help"}, (name, rest)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    """To a file of the project, where they are no addresses."""
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


if __name__ == "__main__":
    for name, (file, _) in TABLES.items():
        file.write_text(with_table(file.read_text(encoding="utf-8"), name), encoding="utf-8")
