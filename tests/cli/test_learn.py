"""`adapter learn` writes a format file that every option for formats accepts; errors name the line and the key."""

from __future__ import annotations

import json

import pytest

from adapter import Parser, UsageError
from adapter.backends.model_queries import Model
from adapter.backends.probe_profiles import Profile, ProfileSetup
from adapter.cli.serve_config import ModelSettings
from adapter.parsing.formats import get_format
from adapter.protocols.translation_options import PromptSettings, TranslationOptions, validate_options
from tests.command_line import adapter

EXAMPLES = [
    ('CALL: get_weather(city="Oslo", days=3)', [("get_weather", {"city": "Oslo", "days": 3})]),
    ("Both.\nCALL: read_file(path='a.py')\nCALL: get_time()", [("read_file", {"path": "a.py"}), ("get_time", {})]),
    ('CALL: search(query="two words")', [("search", {"query": "two words"})]),
]
TOML = """\
name = "made_up"
body = "lines"
head = "[[use "

[pairs]
first = "]]\\n"
following = "\\n"
last = "\\n[[end]]"
none = "]]\\n[[end]]"

[pairs.openings]
string = " = "
"""
TEXT = "[[use read_file]]\npath = a.py\n[[end]]"
TOOLS = [{"name": "read_file", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}]


def write_examples(path, examples=EXAMPLES):
    calls = [[{"name": name, "arguments": arguments} for name, arguments in each] for _, each in examples]
    lines = [json.dumps({"text": text, "calls": each}) for (text, _), each in zip(examples, calls, strict=True)]
    path.write_text("\n".join(lines))
    return path


@pytest.fixture
def format_file(tmp_path):
    file = tmp_path / "made_up.toml"
    file.write_text(TOML)
    return file


def test_a_learned_format_is_written_and_parses_with_the_command(tmp_path):
    done = adapter("learn", write_examples(tmp_path / "my-model.jsonl"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "parses all 3 examples" in done.stdout
    assert "3 of 3" in done.stdout
    file = tmp_path / "my-model.toml"
    assert file.read_text() == 'name = "my_model"\nbody = "python"\nhead = "CALL: "\nbetween = "\\n"\n'
    parsed = adapter("parse", "--format", file, "--json", "--policy", "strict", text='CALL: read_file(path="b.py")')
    assert json.loads(parsed.stdout)["calls"][0]["arguments"] == {"path": "b.py"}
    assert adapter("learn", tmp_path / "my-model.jsonl").returncode == 2  # never overwrites


def test_examples_may_begin_with_a_byte_order_mark(tmp_path):
    file = write_examples(tmp_path / "a.jsonl")
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert adapter("learn", file).returncode == 0


def test_a_refusal_names_the_reasons_and_a_built_in_format(tmp_path):
    examples = [
        (
            "<get_time>\n<zone>UTC</zone>\n<form>long</form>\n</get_time>",
            [("get_time", {"zone": "UTC", "form": "long"})],
        )
    ] * 3
    done = adapter("learn", write_examples(tmp_path / "a.jsonl", examples))
    assert done.returncode == 1
    assert "the text before the name is" in done.stdout
    assert "use --format tool_elements" in done.stdout
    assert not (tmp_path / "a.toml").exists()


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        (['{"text": "x"}'], 'line 1: expected {"text": '),
        (['{"text": "x", "calls": []}', "{"], "line 2: invalid JSON ("),
        (['{"text": "x", "calls": [{"name": "f"}]}'], 'line 1: expected "calls": a list of'),
        (['{"text": 1, "calls": []}'], 'line 1: expected {"text": '),
        (['{"text": "x", "calls": []}'] * 3, "at least 3 with calls are needed"),
    ],
)
def test_wrong_examples_are_reported_with_their_line(tmp_path, lines, error):
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    done = adapter("learn", tmp_path / "a.jsonl")
    assert done.returncode == 2
    assert error in done.stderr


def test_parser_takes_the_path_as_text_or_path(format_file):
    for path in (format_file, str(format_file)):
        parser = Parser(path, TOOLS, policy="strict")
        calls = [event for event in (*parser.feed(TEXT), *parser.close()) if hasattr(event, "arguments")]
        assert [call.arguments for call in calls] == [{"path": "a.py"}]


def test_serve_takes_a_format_file_for_all_or_one_model(format_file):
    options = validate_options(TranslationOptions(prompt=PromptSettings(format=str(format_file))))
    assert get_format(str(options.prompt.format)).encode_calls([("read_file", {"path": "a.py"})]) == TEXT
    setup = ModelSettings(format=str(format_file)).to_setup()
    assert setup is not None
    assert setup.format == "made_up"


def test_a_profile_takes_a_format_file(format_file):
    use = ProfileSetup(format=str(format_file))
    assert Profile(model=Model(name="m"), use=use).setup.format == "made_up"


@pytest.mark.parametrize(
    ("before", "after", "error"),
    [
        ('body = "lines"', 'body = "lnes"', "line 2: body: "),
        ('head = "[[use "', "head = 3", "line 3: head: "),
        ('head = "[[use "', "", "the key 'head' is missing"),
        ('head = "[[use "', 'heda = "[[use "', "did you mean 'head'?"),
        ('none = "]]\\n[[end]]"', "nonne = 1", "line 9: pairs.nonne: unknown key"),
        ('name = "made_up"', 'name = "hermes"', "line 1: name: 'hermes' is a built-in format"),
        ('name = "made_up"', 'name = "../x"', "line 1: name: expected at most"),
        ('string = " = "', 'other = " = "', "the key 'string'"),
        ('string = " = "', f'string = "{"x" * 2000}"', "1,000 characters"),
        ('body = "lines"', 'body = "json"', "line 2: body: body 'json' does not allow a [pairs] table"),
        ('last = "\\n[[end]]"', 'last = "\\n"', "no parser supports this format"),
        ('head = "[[use "', "head =", "line 3"),
        ("]]", "]" * 60_000, "whose maximum is 50,000 bytes"),
    ],
)
def test_an_error_in_a_format_file_names_line_and_key(format_file, before, after, error):
    assert before in TOML
    format_file.write_text(TOML.replace(before, after, 1))
    with pytest.raises(UsageError) as caught:
        Parser(format_file)
    assert error in str(caught.value)
    assert str(format_file) in str(caught.value)


def test_a_missing_format_file_is_reported(tmp_path):
    with pytest.raises(UsageError, match="cannot read the format file"):
        Parser(tmp_path / "none.toml")
