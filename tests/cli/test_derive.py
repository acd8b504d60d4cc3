"""`adapter derive` writes a report or a format file; `--format from-template` uses the derived format."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from adapter.parsing.parser import parse
from adapter.prompting.deriving.codegen import TOOLS, generate_format_files
from adapter.prompting.deriving.derive_format import derive_format
from tests.command_line import adapter
from tests.prompting.deriving.families import KNOWN_FORMS, NESTED_BRACKETS, YAML, fill_of

ROOT = Path(__file__).parents[2]


@pytest.fixture
def template(tmp_path):
    file = tmp_path / "chat_template.jinja"
    file.write_text(KNOWN_FORMS["elements"])
    return file


def test_derive_reports_the_inferred_format(template):
    done = adapter("derive", template)
    assert (done.returncode, done.stderr) == (0, "")
    for piece in (
        "derived from the template and tested",
        "elements with the name",
        "'<muse>' ... '</muse>'",
        "<|stop|>",
    ):
        assert piece in done.stdout
    assert '    <do tool="zqname">' in done.stdout


def test_derive_reports_why_no_format_was_found(tmp_path):
    file = tmp_path / "chat_template.jinja"
    file.write_text(NESTED_BRACKETS)
    done = adapter("derive", file)
    assert done.returncode == 1
    assert "not derived:" in done.stdout
    assert done.stdout.count("no parser supports") == 1
    assert "adapter learn" in done.stdout
    emitted = adapter("derive", file, "--emit", "doer")
    assert (emitted.returncode, emitted.stdout) == (1, "")
    for words in ("no parser supports", "adapter learn"):
        assert emitted.stderr.count(words) == 1


def test_derive_advises_to_test_a_guess(tmp_path):
    file = tmp_path / "plain.jinja"
    file.write_text("{% for message in messages %}{{ message.content }}\n{% endfor %}", encoding="utf-8")
    done = adapter("derive", file, "--model", "Qwen3-Coder-30B")
    assert "qwen3_coder, a guess" in done.stdout
    assert (
        "next step:      test the guess with an answer of the model: `adapter parse --format qwen3_coder`"
        in done.stdout
    )


def test_derive_reports_each_kind_of_misread_value_once(tmp_path):
    file = tmp_path / "chat_template.jinja"
    file.write_text(YAML)
    done = adapter("derive", file)
    assert done.returncode == 1
    kinds = re.findall(r"^misread: +(.*?), by the", done.stdout, re.MULTILINE)
    assert kinds == ["a last line break", "other scripts", "an empty string", "three calls"]
    assert "misreads line breaks, by the template" in done.stdout
    assert "5 texts misread" in done.stdout
    assert done.stdout.count("'---\\ntool: zqname\\nwith:\\n  zqkey: first") == 1


def test_emit_writes_a_format_and_passing_cases(template, tmp_path):
    for folder in ("adapter/parsing/formats", "fixtures/cases"):
        (tmp_path / folder).mkdir(parents=True)
    done = adapter("derive", template, "--emit", "doer", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    module = runpy.run_path(str(tmp_path / "adapter/parsing/formats/doer.py"))
    format = module["FORMAT"]
    assert format.name == "doer"
    cases = sorted((tmp_path / "fixtures/cases/doer").glob("*.toml"))
    assert len(cases) >= 8
    for case in cases:
        told = tomllib.loads(case.read_text())
        turn = parse(told["text"], TOOLS, format, told.get("finish_reason", "stop"), generation_prompt="")
        expected = [event[1] for event in told["events"] if event[0] == "call"]
        assert [call.name for call in turn.calls] == expected
        assert all(event[0] != "invalid" for event in told["events"]) or case.stem == "cut-in-a-value"
    again = adapter("derive", template, "--emit", "doer", cwd=tmp_path)
    assert (again.returncode, "already exists" in again.stderr) == (2, True)


def test_emitted_files_pass_the_linter(tmp_path):
    for number, form in enumerate(KNOWN_FORMS.values()):
        found = derive_format(fill_of(form), "template_test")
        assert found.description is not None
        files = generate_format_files(found.description, "doer", form, "0" * 64)
        (tmp_path / f"doer{number}.py").write_text(files["adapter/parsing/formats/doer.py"], encoding="utf-8")
    for words in (["format", "--diff"], ["check"]):
        command = [sys.executable, "-m", "ruff", *words, "--config", ROOT / "pyproject.toml", tmp_path]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_emit_requires_a_checkout_and_a_new_name(template, tmp_path):
    done = adapter("derive", template, "--emit", "doer", cwd=tmp_path)
    assert (done.returncode, "checkout" in done.stderr) == (2, True)
    done = adapter("derive", template, "--emit", "Do-er", cwd=tmp_path)
    assert (done.returncode, "lower-case letters" in done.stderr) == (2, True)
    done = adapter("derive", template, "--emit", "hermes", cwd=tmp_path)
    assert (done.returncode, "already" in done.stderr) == (2, True)


def test_parse_infers_the_format_from_the_template(template):
    text = '<plan>\n<do tool="read_file">\n<with key="path">a.py</with>\n</do>\n</plan>'
    words = ("parse", "--format", "from-template")
    done = adapter(*words, "--template", template, text=text)
    assert done.returncode == 0, done.stderr
    assert "read_file" in done.stdout
    done = adapter(*words, text=text)
    assert (done.returncode, "--template FILE" in done.stderr) == (2, True)


def test_page_shows_the_printed_report(tmp_path):
    """docs/formats.md shows a template and the report about it."""
    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    source, shown = (re.search(rf"```{kind}\n(.*?)```", page, re.DOTALL) for kind in ("jinja", "console"))
    assert source is not None
    assert shown is not None
    (tmp_path / "chat_template.jinja").write_text(source[1])
    command, _, output = shown[1].partition("\n")
    done = adapter(*command.split()[2:], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, output)
