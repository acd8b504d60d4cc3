"""The command line in real processes, with real exit codes."""

import json
import re
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from adapter.tools.operations.permissions import MODES
from adapter.workspace.sandbox.sandbox import find_unavailable_reason
from tests.command_line import adapter
from tests.scripted_server import CHAT, MODELS, as_json, as_stream, delta

PYTHON = shlex.quote(sys.executable)
CALL = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n</tool_call>'


def parsed(text, *words):
    done = adapter("parse", "-", "--json", *words, text=text)
    turn = json.loads(done.stdout)
    assert done.returncode == (0 if turn["calls"] else 1), done.stderr
    return turn


def test_parse_repairs_a_comma_and_an_alias():
    """A trailing comma and `filename` for `path` give one call with both repairs."""
    turn = parsed('<tool_call>\n{"name": "read_file", "arguments": {"filename": "a.py",}}\n</tool_call>')
    (call,) = turn["calls"]
    assert (call["name"], call["arguments"]) == ("read_file", {"path": "a.py"})
    assert call["fixes"] == ["trailing-comma", "argument-alias"]


HIDING = "\x1b]0;owned\x07\x1b[2J\x9b1A\u202egnp.exe\u200b\r"


def test_commands_escape_control_characters(tmp_path):
    """Escape sequences, C1 controls and bidi controls of models, files and their names are escaped."""
    (tmp_path / "a.txt").write_bytes(f"one {HIDING} two\nthree\n".encode())
    (tmp_path / "b.jsonl").write_text(HIDING)
    patches = json.dumps([{"old_text": "three", "new_text": f"3 {HIDING}"}])
    answer = f"{HIDING}\n<think>{HIDING}</think>{CALL[:-40]}{HIDING}"
    runs = [
        adapter("parse", "-", text=answer),
        adapter("parse", "-", "--explain", text=answer),
        adapter("parse", "-", "--json", text=answer),
        adapter("edit", "a.txt", "--patches", "-", "--dry-run", cwd=tmp_path, text=patches),
        adapter("edit", "a.txt", "--patches", "-", "--json", cwd=tmp_path, text=patches),
        adapter("undo", "--list", cwd=tmp_path),
        adapter("undo", cwd=tmp_path),
        adapter("replay", "b.jsonl", cwd=tmp_path),
        adapter("tool", "view", HIDING, cwd=tmp_path),
    ]
    for run in runs:
        assert not set(run.stdout + run.stderr) & set("\x1b\x07\x9b\u202e\u200b\r"), run
        assert run.stdout + run.stderr
    assert json.loads(runs[2].stdout)["reasoning"].startswith(HIDING[:-2])
    assert HIDING in json.loads(runs[4].stdout)["diff"]


def test_parse_rejects_a_truncated_call():
    """`--finish-reason length` in the middle of a call: no call, with the reason."""
    turn = parsed(CALL[:50], "--finish-reason", "length")
    assert turn["calls"] == []
    assert "cut off" in turn["invalid"][0]["error"]


def test_parse_accepts_tools_from_a_file(tmp_path):
    """Definitions of a client, as OpenAI's JSON."""
    tool = {"type": "function", "function": {"name": "add", "parameters": {"properties": {"n": {"type": "integer"}}}}}
    (tmp_path / "tools.json").write_text(json.dumps([tool]), encoding="utf-8")
    turn = parsed('<tool_call>{"name": "Add", "arguments": {"n": "5"}}</tool_call>', "--tools", tmp_path / "tools.json")
    assert turn["calls"][0]["arguments"] == {"n": 5}


def test_parse_reports_text_without_a_call():
    assert adapter("parse", text="Hello.").stdout == "content:\n  Hello.\nno call\n"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["parse", "/does/not/exist"], 2, "No such file"),
        (["parse", "--format", "hermse"], 2, "did you mean 'hermes'"),
        (["prompt", "--dialect", "blaed"], 2, "did you mean 'blade'"),
        (["replay", "/does/not/exist"], 2, "transcript /does/not/exist not found"),
        (["replay", "--approve", "yolo"], 2, "need --run-commands"),
        (["run", "hi", "--workspace", "/does/not/exist"], 2, "No such file"),
        (["run", "hi", "--approve", "maybe"], 2, "unknown approval mode"),
        (["run", "hi", "--sandbox", "maybe"], 2, "expected one of: auto, bwrap, landlock, none, require"),
        (["run", "hi", "--sandbox-read", "/does/not/exist"], 2, "does not exist"),
        (["run", "hi", "--constraint", "maybe"], 2, "expected auto, off, arguments, prefer, required"),
        (["run", "hi", "--record", "/does/not/exist.jsonl"], 2, "cannot record to"),
        (["run", "hi", "--model", "missing.gguf"], 2, "no such file: missing.gguf"),
        (["run", "hi", "--base-url", "http://127.0.0.1:9"], 3, "nothing answers at http://127.0.0.1:9"),
        (
            ["run", "hi", "--base-url", "nonsense"],
            2,
            "'nonsense' is not a URL, and no server answers at http://nonsense/v1",
        ),
        (["run", "hi", "--base-url", "not a server"], 2, "invalid server URL 'not a server'"),
        (["run", "hi", "--format", "bogus"], 2, "unknown format 'bogus'; the nearest of"),
        (["run", "hi", "--format", "hermse"], 2, "did you mean 'hermes'"),
        (["rnu"], 2, "No such command 'rnu'"),
        (["run", "hi", "--aprove", "yolo"], 2, "--approve"),
    ],
)
def test_wrong_use_reports_the_next_step(tmp_path, words, code, says):
    done = adapter(*words, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert says in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_run_help_is_readable_at_80_columns(tmp_path):
    shown = adapter("run", "--help-all", cwd=tmp_path, env={"COLUMNS": "80"}).stdout
    groups = re.findall(r"^╭─ (.*?) ─+╮$", shown, re.MULTILINE)
    assert groups == ["Arguments", "Options", "Model and prompt", "Tools", "Permissions and sandbox"]
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    longest = max(len(part.splitlines()) for part in re.split(r"^│ (?=--)", shown, flags=re.MULTILINE)[1:])
    assert longest <= 6  # the lines of one option, and the frame below the last


@pytest.mark.parametrize(("command", "count"), [("run", 10), ("chat", 12), ("serve", 10)])
def test_help_shows_common_options_and_help_all_the_others(tmp_path, command, count):
    short, full = (adapter(command, name, cwd=tmp_path).stdout for name in ("--help", "--help-all"))
    options, all_options = (set(re.findall(r"^│ (--[a-z-]+)", text, re.MULTILINE)) for text in (short, full))
    assert len(options - {"--help", "--help-all"}) == count
    assert options < all_options
    assert {"--template", "--prompt"} <= all_options - options
    assert short.rstrip().endswith("--help-all shows all options.")


@pytest.mark.parametrize("command", ["run", "mcp"])
def test_help_names_every_approve_mode(tmp_path, command):
    shown = adapter(command, "--help", cwd=tmp_path, env={"COLUMNS": "80"}).stdout
    about = shown.partition("--approve")[2].partition("--allow")[0]
    assert all(re.search(rf"\b{mode}\b", about) for mode in MODES), about


@pytest.mark.parametrize(
    ("model", "code", "says"),
    [("qwen3:4b", 3, "nothing answers at http://127.0.0.1:9/v1"), ("org/model", 2, "llama-server -hf org/model")],
)
def test_missing_model_explains_how_to_serve_it(tmp_path, model, code, says):
    """A server's model name is not taken for a missing file; a reference is answered with the command that serves
    it.
    """
    done = adapter("run", "hi", "--model", model, cwd=tmp_path, env={"OPENAI_BASE_URL": "http://127.0.0.1:9"})
    assert done.returncode == code, done.stderr
    assert says in " ".join(done.stderr.split())


def test_closed_pipe_is_not_an_error():
    """`adapter prompt | head -1` ends quietly."""
    command = f"{PYTHON} -m adapter prompt --style full | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1


def test_replay_fails_on_a_difference(tmp_path):
    """Exit code 1, and the difference below the table."""
    done = adapter("replay")
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1].endswith("equal")
    (tmp_path / "broken.jsonl").write_text("{", encoding="utf-8")
    done = adapter("replay", tmp_path)
    assert done.returncode == 2
    assert "unreadable" in done.stdout
    assert "DIFFERENT" not in done.stdout


@pytest.fixture
def model(scripted):
    return scripted.on(MODELS, as_json(200, {"object": "list", "data": [{"id": "m", "object": "model"}]}))


def answer(*texts):
    return as_stream(delta(role="assistant"), *map(delta, texts), delta(finish_reason="stop"))


def test_run_prints_only_the_answer_to_stdout(model, tmp_path):
    """The user sees calls and results on standard error."""
    (tmp_path / "a.txt").write_text("remember\n", encoding="utf-8")
    model.on(CHAT, answer("I look.\n", CALL[:20], CALL[20:]), answer("It says ", "remember."))
    done = adapter("run", "What is in a.txt?", "-w", tmp_path, "--base-url", model.url)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "I look.\nIt says remember.\n"
    assert '-> read_file(path="a.txt")' in done.stderr
    assert "<- remember" in done.stderr


def test_change_is_refused_without_a_terminal(model, tmp_path):
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    edit = '<tool_call>\n{"name": "write_file", "arguments": {"path": "a.txt", "content": "two\\n"}}\n</tool_call>'
    model.on(CHAT, answer(edit), answer("Then not."))
    done = adapter("run", "Write two", "-w", tmp_path, "--base-url", model.url)
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "one\n"
    assert "-one" in done.stderr
    assert "--approve auto-edit" in done.stderr
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "-- nothing was done: the call was refused"


def test_interrupted_response_fails(model, tmp_path):
    model.on(CHAT, as_stream(delta("I looked at all of it, and"), done=False, cut=True))
    done = adapter("run", "Look", "-w", tmp_path, "--base-url", model.url)
    assert (done.returncode, done.stdout) == (1, "I looked at all of it, and\n")
    last = "-- the model server disconnected during the answer: check the server's log, and retry"
    assert done.stderr.splitlines()[-1] == last


def test_run_reports_that_changes_cannot_be_undone(model, tmp_path):
    write = '<tool_call>\n{"name": "write_file", "arguments": {"path": "a.txt", "content": "two\\n"}}\n</tool_call>'
    model.on(CHAT, answer(write), answer("Done."))
    words = ("run", "Write two", "-w", tmp_path, "--base-url", model.url, "--approve", "yolo")
    done = adapter(*words, env={"XDG_STATE_HOME": "/dev/null"})
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "two\n"
    assert "1 change was made; the journal could not be saved, so `adapter undo` cannot undo" in done.stderr


def shell(line, folder):
    """Run a line in bash, and return the exit code of its last failed command."""
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], cwd=folder, capture_output=True, text=True, timeout=60
    )


def test_task_can_come_from_standard_input(model, tmp_path):
    model.on(CHAT, answer("Hello."))
    done = adapter("run", "-", "--base-url", model.url, text="Say hello\n", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "Hello.\n")
    assert model.bodies()[0]["messages"][-1] == {"role": "user", "content": "Say hello\n"}
    for task in ("-", " "):
        done = adapter("run", task, "--base-url", model.url, cwd=tmp_path)
        assert (done.returncode, done.stdout, len(model.bodies())) == (2, "", 1)
        assert "the task is empty" in done.stderr


def test_run_stops_when_its_pipe_is_closed(model, tmp_path):
    model.on(CHAT, answer(*(f"line {number} {'x' * 300}\n" for number in range(500))))
    done = shell(f"{PYTHON} -m adapter run hi --base-url {model.url} | head -1", tmp_path)
    assert done.returncode == 1
    assert done.stdout.startswith("line 0 x")
    assert [line for line in done.stderr.splitlines() if not line.startswith(("m at ", "prompt: ", "sandbox: "))] == []
    both = shell(f"{PYTHON} -m adapter run hi --base-url {model.url} 2>&1 | head -1", tmp_path)
    assert (both.returncode, both.stderr) == (1, "")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_closed_stream_does_not_crash(tmp_path, closed):
    """The other streams work, and no file takes its place."""
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    (tmp_path / "patches.json").write_text('[{"old_text": "one", "new_text": "two"}]', encoding="utf-8")
    done = shell(f"{PYTHON} -m adapter edit a.txt --patches patches.json {closed}", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert ("+two" in done.stdout) is (closed != ">&-")
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "two\n"


def test_error_without_standard_error_has_its_exit_code(tmp_path):
    (tmp_path / "patches.json").write_text('[{"old_text": "one", "new_text": "two"}]', encoding="utf-8")
    missing = shell(f"{PYTHON} -m adapter edit b.txt --patches patches.json 2>&-", tmp_path)
    assert (missing.returncode, missing.stderr) == (1, "")
    if Path("/dev/full").exists():
        assert shell(f"{PYTHON} -m adapter parse missing.txt 2> /dev/full", tmp_path).returncode == 2


def test_output_is_utf_8_in_any_locale(tmp_path):
    """An accented text does not crash in the locale C."""
    (tmp_path / "a.txt").write_text("café ✓", encoding="utf-8")
    plain = "LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 PYTHONIOENCODING=ascii"
    done = shell(f"{plain} {PYTHON} -m adapter parse a.txt", tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert "café ✓" in done.stdout


def test_without_a_call_the_reason_and_the_next_step_are_shown(tmp_path):
    (tmp_path / "a.txt").write_text('-> read_file(path="a.py")', encoding="utf-8")
    done = shell(f"{PYTHON} -m adapter parse a.txt", tmp_path)
    assert done.stdout.splitlines()[-1] == (
        r"""  "read_file(path=\"a.py\")": it names a tool, but no format writes calls like this"""
    )
    assert all(word in done.stderr for word in ("--explain", "adapter derive", "adapter learn"))


@pytest.mark.parametrize("text", ['{"id": "1", "choices": [{"message": {}}]}', 'data: {"choices": [{"delta": {}}]}\n'])
def test_parse_explains_that_a_response_is_not_the_text_of_a_model(tmp_path, text):
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    done = shell(f"{PYTHON} -m adapter parse a.json", tmp_path)
    assert done.returncode == 1
    assert "response of a server" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", ["parse a.txt", "--help"])
def test_full_disk_is_reported(tmp_path, words):
    (tmp_path / "a.txt").write_text(CALL, encoding="utf-8")
    done = shell(f"{PYTHON} -m adapter {words} > /dev/full", tmp_path)
    assert done.returncode == 1
    assert done.stderr == "adapter: cannot write: No space left on device. Free some space, or write to another disk.\n"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_byte_order_mark_selects_the_encoding(tmp_path, encoding):
    (tmp_path / "a.txt").write_text(f"Café.\n{CALL}", encoding=encoding)
    done = adapter("parse", "a.txt", "--json", cwd=tmp_path)
    turn = json.loads(done.stdout)
    assert (turn["content"], [call["name"] for call in turn["calls"]]) == ("Café.", ["read_file"])


@pytest.mark.parametrize("words", [["-h"], ["parse", "-h"]])
def test_help_has_a_short_option(words):
    done = adapter(*words)
    assert done.returncode == 0
    assert "Usage:" in done.stdout


def test_run_reports_the_sandbox(model, tmp_path):
    call = '<tool_call>\n{"name": "run_command", "arguments": {"command": "cat ../key", "cwd": "."}}\n</tool_call>'
    (tmp_path / "key").write_text("hunter2", encoding="utf-8")
    (tmp_path / "w").mkdir()
    model.on(CHAT, answer(call), answer("Then not."))
    words = ("run", "Look", "-w", tmp_path / "w", "--base-url", model.url)
    done = adapter(*words)
    assert done.stderr.count("sandbox: ") == 2
    done = adapter(*words, "--sandbox", "none", "--approve", "yolo")
    assert "sandbox: NONE, commands have all your rights (as requested)" in done.stderr
    asked = len(model.bodies())
    model.on(CHAT, answer(call), answer("Then not."))
    done = adapter(*words, "--sandbox", "require", "--approve", "yolo")
    if find_unavailable_reason("bwrap") is None or find_unavailable_reason("landlock") is None:
        assert done.returncode == 0, done.stderr
        assert "hunter2" not in done.stderr + done.stdout
    else:
        assert done.returncode == 2
        assert len(model.bodies()) == asked


def test_recorded_run_replays_equal(model, tmp_path):
    """`--record`, then `replay`: approvals, results and files included."""
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "a.txt").write_text("one\n", encoding="utf-8")
    edit = '<tool_call>\n{"name": "write_file", "arguments": {"path": "a.txt", "content": "two\\n"}}\n</tool_call>'
    model.on(CHAT, answer(edit), answer(CALL), answer("Done."))
    record = tmp_path / "talk.jsonl"
    for approve in ("yolo", "ask"):
        adapter(
            "run", "Write two", "-w", tmp_path / "w", "--base-url", model.url, "--approve", approve, "--record", record
        )
        done = adapter("replay", record)
        assert done.returncode == 0, done.stdout
    assert record.stat().st_mode & 0o777 == 0o600


def test_run_that_fails_before_it_begins_records_nothing(tmp_path):
    """A new file is not created, and an earlier recording is kept."""
    record, earlier = tmp_path / "new.jsonl", tmp_path / "earlier.jsonl"
    earlier.write_text("earlier\n", encoding="utf-8")
    for file in (record, earlier):
        assert (
            adapter("run", "hi", "-w", tmp_path, "--base-url", "http://127.0.0.1:9", "--record", file).returncode == 3
        )
    assert not record.exists()
    assert earlier.read_text(encoding="utf-8") == "earlier\n"


def test_control_sequences_never_reach_the_terminal(model, tmp_path):
    """It is escaped on both streams."""
    model.on(
        CHAT,
        answer("\x1b[2Jhello", '<tool_call>\n{"name": "read_\x1b]0;x", "arguments": {}}\n</tool_call>'),
        answer("."),
    )
    done = adapter("run", "hi", "-w", tmp_path, "--base-url", model.url)
    assert "\x1b" not in done.stdout + done.stderr
    assert "\\x1b[2Jhello" in done.stdout


def test_ctrl_c_exits_with_130(model, tmp_path):
    """SIGINT while the server is silent ends the program quickly, without a traceback."""
    slow = as_stream(delta(role="assistant"), delta("I thi"), done=False)
    model.on(CHAT, replace(slow, length=len(slow.body) + 99, linger_s=60))
    words = [sys.executable, "-m", "adapter", "run", "hi", "-w", tmp_path, "--base-url", model.url]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.read(5) == "I thi"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, output = process.communicate(timeout=100)
    finally:
        process.kill()
    assert process.returncode == 130, output
    assert "stopped by the user" in output
    assert "Traceback" not in output


def test_parse_explain_lists_the_spans(tmp_path):
    text = tmp_path / "answer.txt"
    text.write_text(
        'Not `<tool_call>`:\n<tool_call>\n{"name": "read_file", "arguments": {"file": "a.py",}}\n</tool_call>'
    )
    shown = adapter("parse", text, "--explain").stdout
    assert "content    0-18          Not `<tool_call>`:\n" in shown
    assert "- rejected call at 5-16: it is in inline code\n" in shown
    assert '= read_file({"path": "a.py"})\n' in shown
    assert "* trailing-comma: a comma before a closing bracket was dropped\n" in shown
    assert "\x1b" not in shown
    assert "\x1b[32m<tool_call>" in adapter("parse", text, "--explain", env={"FORCE_COLOR": "1", "NO_COLOR": ""}).stdout
    spans = json.loads(adapter("parse", text, "--explain", "--json").stdout)["spans"]
    assert [(span["kind"], span["start"], span["end"]) for span in spans] == [
        ("content", 0, 18), ("markup", 18, 19), ("call", 19, 97),
    ]  # fmt: skip
    assert spans[0]["rejected"] == [{"start": 5, "end": 16, "reason": "inline-code", "why": "it is in inline code"}]
    assert set(spans[2]["fixes"]) == {"trailing-comma", "argument-alias"}


def test_parse_accepts_a_policy(tmp_path):
    text = tmp_path / "answer.txt"
    text.write_text('{"name": "read_file", "arguments": {"path": "a.py"}}')
    assert "call: read_file" in adapter("parse", text).stdout
    assert "no call" in adapter("parse", text, "--policy", "strict").stdout
    wrong = adapter("parse", text, "--policy", "lax")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "expected strict, safe, approved, lenient" in wrong.stderr


def test_prompt_counts_tokens(random_gguf):
    estimated = adapter("prompt", "--tokens")
    assert estimated.stdout == adapter("prompt").stdout
    assert re.fullmatch(r"about \d{3} tokens, estimated; .*\n", estimated.stderr)
    counted = adapter("prompt", "--tokens", "--model", random_gguf)
    found = re.fullmatch(r"(\d+) tokens, counted by the tokenizer of random.gguf\n", counted.stderr)
    assert found, counted.stderr
    more = adapter("prompt", "--tokens", "--model", random_gguf, "--style", "full").stderr
    assert int(more.split()[0]) > int(found[1])


@pytest.mark.parametrize(("guide", "shows_all"), [("off", True), ("auto", False)])
def test_guide_off_applies_to_a_required_call(model, tmp_path, guide, shows_all):
    """A guided model sees only the tool that the wording of the request chooses."""
    model.on(CHAT, answer('<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}\n</tool_call>'))
    options = ("--constraint", "required", "--guide", guide, "--max-turns", "1")
    adapter("run", "Read a.txt", "-w", tmp_path, "--base-url", model.url, *options)
    assert ("write_file" in model.bodies()[-1]["messages"][0]["content"]) is shows_all


def test_local_tools_file_needs_approval(model, tmp_path):
    tool = {"name": "Greet", "description": "Greet.", "executable": "echo", "argumentTemplate": [["hello"]]}
    file = tmp_path / "tools.json"
    file.write_text(json.dumps([tool]), encoding="utf-8")
    (tmp_path / "w").mkdir()
    words = ("run", "Greet", "-w", tmp_path / "w", "--base-url", model.url, "--dialect", "promptly")

    def run(*more):
        model.on(CHAT, answer("Done."))
        return adapter(*words, *more, cwd=tmp_path)

    refused = run("--approve", "yolo")
    assert refused.returncode == 2
    assert "Greet: runs echo" in refused.stderr
    assert "--trust-tools" in refused.stderr
    assert run("--trust-tools").returncode == 0
    assert run().returncode == 0
    file.write_text(json.dumps([tool | {"executable": "rm"}]), encoding="utf-8")
    assert run().returncode == 2
    assert adapter("prompt", "--dialect", "promptly", cwd=tmp_path).returncode == 0


def test_edit_of_a_folder_creates_a_file_from_an_edit_without_old_text(tmp_path):
    """Many tools define it so. With more than one patch it remains an edit of a file that must exist."""
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    rows = [{"path": "a.txt", "old_text": "one", "new_text": "two"}, {"path": "b.txt", "old_text": "", "new_text": "x"}]
    (tmp_path / "patches.json").write_text(json.dumps(rows), encoding="utf-8")
    done = shell(f"{PYTHON} -m adapter edit . --patches patches.json", tmp_path)
    assert done.returncode == 0, done.stderr
    assert [(tmp_path / name).read_text(encoding="utf-8") for name in ("a.txt", "b.txt")] == ["two\n", "x\n"]
