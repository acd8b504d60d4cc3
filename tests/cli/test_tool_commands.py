"""`adapter tool` and the options that choose tools, used by a person and a script."""

import json
import os
import pty

import pytest

from tests.command_line import adapter
from tests.scripted_server import CHAT, MODELS, as_json, as_stream, delta


@pytest.fixture
def run(tmp_path):
    """Run the command line in its own folder and home."""
    for name in ("here", "home"):
        (tmp_path / name).mkdir()

    def run(*words, code=0, **options):
        done = adapter(*words, cwd=tmp_path / "here", **options, env={"HOME": str(tmp_path / "home")})
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run


@pytest.fixture
def here(tmp_path, run):
    return tmp_path / "here"


ADD = ("tool", "add", "--id", "Greet", "--name", "Say hello", "--command", "echo")


def test_tool_can_be_added_listed_viewed_and_removed(run, here, tmp_path):
    """C127 to C131."""
    user_file = tmp_path / "home/.config/promptly/tools.json"
    run(*ADD)
    assert json.loads(user_file.read_text())["shellCommands"] == [
        {"name": "Greet", "description": "Say hello", "executable": "echo", "argumentTemplate": []}
    ]
    lines = run("tool", "list").stdout.splitlines()
    assert lines[0].split() == ["ID", "SOURCE", "PROGRAM", "DESCRIPTION"]
    assert ["Greet", "user", "echo", "Say", "hello"] in [line.split() for line in lines]
    assert ["WriteToFile", "built-in", "-"] in [line.split()[:3] for line in lines]
    assert ["TouchFile", "default", "touch"] in [line.split()[:3] for line in lines]
    viewed = run("tool", "view", "Greet")
    assert json.loads(viewed.stdout) == {"name": "Greet", "description": "Say hello", "executable": "echo"}
    assert "source: user" in viewed.stderr
    assert "content" in json.loads(run("tool", "view", "WriteToFile").stdout)["parameters"]["properties"]
    run("tool", "remove", "Greet", "--force")
    assert json.loads(user_file.read_text()) == {"shellCommands": []}
    assert "did you mean" in run("tool", "view", "TouchFiles", code=3).stderr


def test_files_with_a_byte_order_mark_are_read(run, here):
    """As some editors on Windows write them."""
    (here / "tools.json").write_text('[{"name": "Greet", "executable": "echo"}]', encoding="utf-8-sig")
    (here / "n.json").write_text('{"properties": {"n": {"type": "integer"}}}', encoding="utf-8-sig")
    run("tool", "add", "--id", "Count", "--name", "n", "--command", "echo", "--parameters-file", "n.json")
    shown = run("tool", "list").stdout
    assert "Greet" in shown
    assert "Count" in shown


def test_tool_add_writes_every_option(run, here):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "path": {"type": "string"}}}
    flags = ("--echo-output", "--truncate-output", "--exclusive-argument-template", "--opt-in")
    run(
        *(*ADD, *flags, "--argument-template", "-n,{{n}},{(path)}", "--argument-template", "{(path)}"),
        *("--parameters", json.dumps(schema), "--config-file", "mine.json"),
    )
    (entry,) = json.loads((here / "mine.json").read_text())["shellCommands"]
    assert entry == {
        "name": "Greet",
        "description": "Say hello",
        "executable": "echo",
        "argumentTemplate": [["-n", "{{n}}", "{(path)}"], ["{(path)}"]],
        "parameters": schema,
        "echoOutput": True,
        "truncateOutput": True,
        "exclusiveArgumentTemplate": True,
        "optIn": True,
    }
    (here / "schema.json").write_text(json.dumps(schema))
    run(*ADD, "--config-file", "other.json", "--parameters-file", "schema.json")
    assert json.loads((here / "other.json").read_text())["shellCommands"][0]["parameters"] == schema
    listed = run("tool", "list", "--tools", "mine", code=0)
    assert "not offered: Greet (add --include-tools Greet)" in listed.stderr
    assert "Greet" in run("tool", "list", "--tools", "mine", "--include-tools", "Gr").stdout


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ([*ADD], 2, "already has a tool 'Greet'"),
        ([*ADD[:2], "--id", "x", "--name", "y"], 2, "--command"),
        ([*ADD, "--config-file", "n.json", "--parameters", "{"], 2, "the parameters are not valid JSON"),
        ([*ADD, "--config-file", "n.json", "--parameters", "{}", "--parameters-file", "x"], 2, "cannot be combined"),
        ([*ADD, "--config-file", "n.json", "--parameters-file", "x"], 2, "cannot read x"),
        ([*ADD, "--config-file", "n.json", "--argument-template", "{{x}}"], 2, "is not one of its parameters"),
        (["tool", "view", "Gret"], 3, "did you mean 'Greet'"),
        (["tool", "remove", "Gret", "--force"], 3, "did you mean 'Greet'"),
        (["tool", "remove", "Greet", "--config-file", "none.json"], 3, "available: none"),
        (["tool", "remove", "Greet"], 1, "--force skips it"),
        (["tool", "list", "--tools", "missing"], 2, "tools file not found: neither missing.json"),
        (["tool", "list", "--include-tools", "zzz"], 2, "no tool's name contains 'zzz'"),
        (["prompt", "--include-tools", "x"], 2, "adapter: --include-tools can only be used with --dialect promptly"),
        (["run", "hi", "--dialect", "promptly", "--tools", "missing"], 2, "tools file not found: neither missing.json"),
    ],
)
def test_tool_errors_explain_the_next_step(run, here, words, code, says):
    """With a separate exit code, and without changing files."""
    run(*ADD, "--config-file", "tools.json")
    before = (here / "tools.json").read_bytes()
    done = run(*words, code=code)
    assert says in " ".join(done.stderr.split())
    assert (here / "tools.json").read_bytes() == before
    assert [path.name for path in here.iterdir()] == ["tools.json"]


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1), ("", 1)])
def test_tool_remove_needs_confirmation(run, here, answer, code):
    run(*ADD, "--config-file", "tools.json")
    ours, theirs = pty.openpty()
    try:
        os.write(ours, f"{answer}\n".encode())
        done = run("tool", "remove", "Greet", code=code, terminal=os.ttyname(theirs))
    finally:
        os.close(ours)
        os.close(theirs)
    assert "Remove tool 'Greet' from tools.json?" in done.stderr
    assert ("Greet" in (here / "tools.json").read_text()) == bool(code)


def test_tool_install_writes_the_shipped_file_once(run, tmp_path):
    """C130."""
    file = tmp_path / "home/.config/promptly/tools.json"
    assert run("tool", "install").stdout == f"{file}\n"
    assert "nothing was changed" in run("tool", "install", code=2).stderr
    run("tool", "install", "--tools", "mine")
    assert file.with_name("mine.json").read_bytes() == file.read_bytes()


def test_prompt_and_parse_use_the_selected_tools(run, here):
    """`--tools`, `--include-tools` and `--exclude-tools` mean the same everywhere."""
    for name in ("Greet", "GreetLoud"):
        run("tool", "add", "--id", name, "--name", "x", "--command", "echo", "--config-file", "mine.json")
    choice = ("--dialect", "promptly", "--tools", "mine", "--include-tools", "Greet", "--exclude-tools", "Loud")
    prompt = run("prompt", *choice).stdout
    assert "- Greet()" in prompt
    assert "GreetLoud" not in prompt
    assert "WriteToFile" not in prompt
    parsed = run("parse", "-", "--json", *choice, text='<tool_call>{"name": "greet", "arguments": {}}</tool_call>')
    assert json.loads(parsed.stdout)["calls"][0]["name"] == "Greet"
    assert "ListFiles" in run("prompt", "--dialect", "promptly").stdout


def test_model_runs_a_user_defined_tool(run, here, scripted):
    """C120, C126, C134, C140."""
    (here / "sub").mkdir()
    model = scripted.on(MODELS, as_json(200, {"object": "list", "data": [{"id": "m", "object": "model"}]}))
    call = '<tool_call>\n{"name": "Show", "arguments": {"path": "sub/../sub", "text": "$(id)"}}\n</tool_call>'
    for text in (call, "Done."):
        model.on(CHAT, as_stream(delta(role="assistant"), delta(text), delta(finish_reason="stop")))
    properties = {"path": {"type": "string"}, "text": {"type": "string"}}
    run(
        *("tool", "add", "--id", "Show", "--name", "Show it", "--command", "echo", "--echo-output"),
        *("--argument-template", "{(path)},{{text}}", "--config-file", "tools.json"),
        *("--parameters", json.dumps({"type": "object", "properties": properties})),
    )
    words = ("run", "Show sub", "--dialect", "promptly", "--base-url", model.url, "--trust-tools", "--approve")
    done = run(*words, "yolo")
    assert done.stdout == "Done.\n"
    assert done.stderr.count("./sub $(id)\n") == 2  # as it came, and as the result
