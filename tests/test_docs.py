"""The pages are correct: consoles show real output, and commands, options and links exist."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from adapter.cli.app import make_app
from tests import drawings, terminal_picture

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = {
    page.relative_to(ROOT).as_posix(): page
    for page in (*(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")), *sorted(DOCS.rglob("*.md")))
}
CONSOLES = {
    "README.md": {},
    "docs/quickstart.md": {},
    "docs/troubleshooting.md": {},
    "docs/edit.md": {"settings.ini": "[server]\nport = 8000\n"},
}
"""Pages whose consoles are run here, with the files that are there before."""
ELSEWHERE = {"docs/formats.md": "tests/cli/test_derive.py"}
DEMO = "adapter demo"
MAX_WORDS = 29_000
"""Maximum number of words of all pages in docs/ together, code and tables included."""
_FENCED = re.compile(r"^(```|~~~).*?^\1$", re.DOTALL | re.MULTILINE)


def consoles(name: str) -> list[str]:
    return re.findall(r"```console\n(.*?)```", PAGES[name].read_text(encoding="utf-8"), re.DOTALL)


def sessions(block: str) -> list[tuple[list[str], str]]:
    """Return the commands of a console block, each with its output."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)[1:]
    return [(shlex.split(command), output) for command, output in zip(parts[::2], parts[1::2], strict=True)]


def run(words: list[str], folder: Path) -> str:
    """Return both streams, as a terminal shows them."""
    command = [sys.executable, "-m", "adapter", *words]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_pages_are_short_enough_to_read():
    """A new page or paragraph takes the place of one that repeats something. Count with `wc -w docs/*.md`."""
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in DOCS.glob("*.md")) <= MAX_WORDS


@pytest.mark.parametrize("name", CONSOLES)
def test_consoles_show_the_real_output(name, tmp_path):
    """`cat` shows the file that the commands after it read."""
    for file, text in CONSOLES[name].items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    for block in consoles(name):
        for (program, *words), output in sessions(block):
            if program == "cat":
                (tmp_path / words[0]).write_text(output, encoding="utf-8")
            elif [program, *words] != DEMO.split():
                assert program == "adapter"
                assert run(words, tmp_path) == output


@pytest.mark.model
def test_demo_console_shows_the_real_output(tmp_path, real_weights):
    """The built-in model really edits the file, as shown. The line about the sandbox depends on the machine."""
    shown = {" ".join(words): output for block in consoles("docs/quickstart.md") for words, output in sessions(block)}
    output = re.sub(r"(?m)^sandbox: .*\n", "", run(["demo"], tmp_path))
    assert output == shown[DEMO]


def test_every_console_is_run():
    """A page with a console must be named above."""
    assert {name for name in PAGES if consoles(name)} == {*CONSOLES, *ELSEWHERE}


@cache
def all_commands() -> dict[str, Any]:
    found: dict[str, Any] = typer.main.get_command(make_app()).commands  # type: ignore[attr-defined]  # click's, in typer
    return found


@pytest.mark.parametrize("name", PAGES)
def test_commands_and_options_named_in_the_text_exist(name):
    """In every `adapter COMMAND --option` in code."""
    shown = re.findall(r"```(?:sh|console)\n.*?```|`adapter [^`]*`", PAGES[name].read_text(encoding="utf-8"), re.DOTALL)
    commands = all_commands()
    for word, rest in re.findall(r"\badapter ([a-z]+)(.*)", "\n".join(shown).replace("\\\n", " ")):
        assert word in commands, word
        inner = [commands[word], *getattr(commands[word], "commands", {}).values()]
        known = {each for one in inner for option in one.params for each in (*option.opts, *option.secondary_opts)}
        assert set(re.findall(r"(?<![\w'-])--[a-z][a-z-]+", rest)) <= known | {"--help"}, (word, rest)


@pytest.mark.parametrize("name", PAGES)
def test_code_on_pages_is_valid(name):
    """Python compiles, and JSON is valid; other tests run the complete programs."""
    fenced = re.compile(r"^(```|~~~)(\w*)[^\n]*\n(.*?)^\1$", re.DOTALL | re.MULTILINE)
    for _, language, code in fenced.findall(PAGES[name].read_text(encoding="utf-8")):
        if language in ("python", "py"):
            compile(code, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        elif language == "json":
            json.loads(code)


def test_steps_on_the_page_are_accepted():
    (code,) = re.findall(
        r"<!-- python: steps -->\n```python\n(.*?)```", (DOCS / "reliability.md").read_text("utf-8"), re.DOTALL
    )
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["steps"].required == ["search"]


def anchors(page: Path) -> set[str]:
    """Return the anchors of its headings, as GitHub and the site create them."""
    headings = re.findall(r"^#+ (.+)$", _FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    """To a file of the project, and to an existing heading."""
    page = PAGES[name]
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    for target, anchor in re.findall(r"\]\((?!https?://)([^)#\s]*)(?:#([^)\s]+))?\)", text):
        led_to = (page.parent / target).resolve() if target else page
        assert led_to.exists(), target
        assert not anchor or anchor in anchors(led_to), f"{target}#{anchor}"


def test_no_page_is_left_out():
    """Each has one line below `nav` in mkdocs.yml."""
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    named = re.findall(r": (\S+\.md)$", nav, re.MULTILINE)
    of_the_top = {"index.md", "contributing.md", "security.md", "changelog.md"}
    assert sorted(named) == sorted({*of_the_top, *(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))})


def test_every_public_name_is_in_the_reference():
    """Each once, except old names."""
    import adapter

    named = re.findall(r"^::: adapter\.(\w+)$", (DOCS / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(named) == sorted({*adapter.__all__} - adapter.ALIASES.keys())


@pytest.mark.parametrize("name", drawings.DRAWINGS)
def test_drawings_are_up_to_date(name):
    """Run `python -m tests.generate --pictures` when this fails."""
    assert (drawings.FOLDER / f"{name}.svg").read_text(encoding="utf-8") == drawings.DRAWINGS[name].svg()


def test_terminal_picture_is_up_to_date():
    """Run `python -m tests.generate --pictures` when this fails."""
    drawn = terminal_picture.PICTURE.read_text(encoding="utf-8")
    assert terminal_picture.picture(terminal_picture.lines()).splitlines() == drawn.splitlines()
