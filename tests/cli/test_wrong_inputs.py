"""Invalid input to any command gives one short message, the right exit code and no traceback."""

import re
import socket
import subprocess
import sys
import threading

import pytest

from tests.command_line import adapter
from tests.http_requests import send

DEAD = "http://127.0.0.1:9"
"""Port 9 (discard) has no listener."""

MAX_LINES = 3
RAW_WORDING = re.compile(
    r"Traceback|NoneType|discriminator|pydantic|Errno|has no attribute|JSONDecodeError|codec can't|embedded null|"
    r"Field required|validation error|recursion depth"
)
"""Terms of Python and of libraries, which do not help the user of a command."""

LONG = "x" * 300


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A working directory with one invalid file of each kind."""
    place = tmp_path_factory.mktemp("wrong")
    (place / "dir").mkdir()
    texts = {
        "a.txt": "hello\n", "broken.json": '{"a": ', "list.json": "[1, 2]", "object.json": "{}", "null.json": "null",
        "deep.json": "[" * 100_000, "one.jsonl": '{"text": "hi"}\n', "bad_rows.jsonl": '{"text": \n{"te\n',
        "bad.toml": "a = [\n", "wrong.toml": "nonsense = 3\n", "bad.jinja": "{% for x in %}", "x.gguf": "nope",
        "fails.py": "1/0\n", "patch.json": '[{"old_text": "hello", "new_text": "bye"}]',
        "header.jsonl": '{"kind": "header"}\n', "kind.jsonl": '{"kind": "other"}\n', "x.parquet": "PAR1nope",
        "tool.json": '[{"name": "f", "parameters": 3}]', "mcp.json": '{"mcpServers": 3}',
        "words.toml": 'max-streams = "four"', "model.toml": '[models.m]\nformat = "hermez"',
    }  # fmt: skip
    for name, text in texts.items():
        (place / name).write_text(text)
    (place / "empty").touch()
    (place / "binary.bin").write_bytes(bytes(range(256)) * 20)
    (place / "latin1.txt").write_bytes("größe\n".encode("latin-1"))
    return place


def not_http():
    """Return the address of a server with another protocol."""
    server = socket.create_server(("127.0.0.1", 0))

    def greet():
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                connection.sendall(b"SSH-2.0-OpenSSH_9.0\r\n")

    threading.Thread(target=greet, daemon=True).start()
    return server, f"http://127.0.0.1:{server.getsockname()[1]}"


ADD = ["tool", "add", "--id", "x", "--name", "y", "--command", "ls"]
RUN = ["run", "hi", "--base-url", DEAD]
SERVE = ["serve", "--upstream", DEAD, "--host", "256.1.1.1"]
EVAL = ["eval", "--base-url", DEAD]
FILES = ["missing", "dir", "binary.bin", "deep.json", LONG, "a.txt/b", "\udcff.txt", "latin1.txt"]
"""Files given to commands that read text or JSON."""
NUMBERS = ["-1", "nan", ""]

CASES = {
    "parse": [
        *((["parse", file], 2, "cannot read") for file in ("missing", "dir", "a\0b", LONG, "a.txt/b")),
        *((["parse", "a.txt", "--tools", file], 2, "tool definitions") for file in (*FILES, "empty", "broken.json")),
        (["parse", "a.txt", "--tools", "null.json"], 2, "must contain a JSON list"),
        (["parse", "a.txt", "--tools", "tool.json"], 2, "expected a JSON Schema"),
        *((["parse", "a.txt", "--format", "from-template", "--template", file], 2, "") for file in FILES),
        (["parse", "a.txt", "--format", "from-template"], 2, "--template FILE must be given together"),
        (["parse", "a.txt", "--tools", "list.json", "--include-tools", "x"], 2, "--dialect promptly"),
        (["parse", "one.jsonl", "--exchange", "1", "--policy", "strict"], 2, "uses the recorded settings"),
        (["parse", "a.txt", "--template", "a.txt"], 2, "--template FILE must be given together"),
        (["parse", "a.txt", "--format", "hermess"], 2, "did you mean 'hermes'"),
        (["parse", "a.txt", "--policy", "lenent"], 2, "expected strict, safe, approved, lenient"),
        (["parse", "a.txt", "--dialect", "blad"], 2, "did you mean 'blade'"),
        (["parse", "a.txt", "b.txt"], 2, "extra argument"),
        (["parse", "a.txt", "--fromat", "x"], 2, "--format"),
        *((["parse", "a.txt", "--exchange", number], 2, "--exchange") for number in ("0", *NUMBERS)),
        (["parse", "one.jsonl", "--exchange", "1"], 2, "is not a recorded exchange"),
        (["parse", "a.txt"], 1, ""),
        (["parse", "a.txt", "--json"], 1, ""),
        (["parse", "/dev/null"], 1, ""),
    ],
    "empty paths": [
        ([*words, ""], 2, "the path is empty")
        for words in (
            ["run", "hi", "-w"], ["run", "hi", "--sandbox-write"], ["run", "hi", "--skills", "dir", "--skills"],
            ["mcp", "--root"], ["undo", "--all"], ["undo", "-w"], ["edit", "--patches", "patch.json"], ["doctor", "-w"],
            ["prompt", "--prompts"], ["replay"], ["export", "--out", "-"], ["probe", "--output"], ["serve", "--config"],
            ["tool", "remove", "x", "--config-file"],
        )
    ],
    "read": [
        (["read", "one.jsonl", "--out", "-", "--ray", "--jobs", "2"], 2, "cannot be combined"),
        *((["read", file, "--out", "-"], 2, "") for file in ("missing", "dir", "a.txt", "", "a\0b")),
        (["read", f"{LONG}.jsonl", "--out", "-"], 2, "File name too long"),
        (["read", "bad_rows.jsonl", "--out", "-"], 1, "check the file"),
        (["read", "one.jsonl", "--out", "-", "--column", "txt"], 1, "with --column"),
        (["read", "one.jsonl", "--out", "one.jsonl"], 2, "already"),
        (["read", "one.jsonl", "--out", "a.txt"], 2, "--out must be FILE.jsonl, FILE.parquet or -"),
        *((["read", "one.jsonl", "--out", "-", "--tools", file], 2, "") for file in (*FILES, "null.json", "list.json")),
        (["read", "one.jsonl", "--out", "-", "--policy", "x"], 2, "expected strict"),
        *((["read", "one.jsonl", "--out", "-", "--jobs", number], 2, "--jobs") for number in ("0", *NUMBERS)),
    ],
    "templates": [
        *((["derive", file], 2, "") for file in ("missing", "dir", "binary.bin", "deep.json", LONG)),
        *((["derive", file], 1, "") for file in ("bad.jinja", "x.gguf")),
        (["derive", "bad.jinja", "--emit", "Foo"], 1, "write the format by hand"),
        *((["prompt", "--template", file], 2, "") for file in ("missing", "dir", "binary.bin", "deep.json", "empty")),
        *((["prompt", "--prompts", file], 2, "folder of prompt templates not found") for file in ("missing", "a.txt")),
        (["prompt", "--style", "compat"], 2, "compact"),
        (["prompt", "--tools", "x"], 2, "cannot read tool definitions from 'x'"),
        *((["prompt", "--tokens", "--model", file], 2, "") for file in ("missing", "dir", "a.txt", LONG)),
        (["prompt", "--tokens", "--base-url", DEAD], 3, "nothing answers"),
    ],
    "edit": [
        (["edit", "missing", "--patches", "patch.json"], 1, "does not exist"),
        (["edit", "binary.bin", "--patches", "patch.json"], 1, "binary"),
        (["edit", "empty", "--patches", "patch.json"], 1, "not found"),
        (["edit", LONG, "--patches", "patch.json"], 2, "File name too long"),
        *((["edit", "a.txt", "--dry-run", "--patches", file], 2, "cannot read") for file in FILES),
        (["edit", "a.txt", "--patches", "patch.json", "--edits", "exat"], 2, "exact"),
        (["edit", "a.txt", "--patches", "patch.json", "--encoding", "utf-99"], 2, "unknown encoding"),
        (["edit", "a.txt"], 2, "--patches"),
        (["undo", "missing"], 2, "pass a directory"),
        (["undo", "a.txt"], 2, "pass a directory"),
        (["undo", "dir"], 1, "nothing to undo"),
    ],
    "run": [
        (RUN, 3, "nothing answers"),
        (["run", ""], 2, "the task is empty"),
        (["run", "-"], 2, "the task is empty"),
        (["run"], 2, "pass a task"),
        (["chat"], 2, "standard input is empty"),
        (["run", "hi", "--base-url", "ftp://x"], 2, "expected a URL like http"),
        (["run", "hi", "--base-url", "http://[::1"], 2, "expected a URL like http"),
        *(([*RUN, "-w", file], 2, "pass a directory") for file in ("missing", "a.txt", LONG)),
        *(([*RUN, "--profile", file], 2, "profile") for file in ("missing", "dir", "a\0b", LONG)),
        ([*RUN, "--config", "/dev/fd/99"], 2, "cannot read"),
        ([*RUN, "--record", "dir"], 2, "cannot record"),
        ([*RUN, "--prompts", "missing"], 2, "folder of prompt templates not found"),
        ([*RUN, "--mcp", "http://[::1"], 2, "expected one like http"),
        ([*RUN, "--mcp", "http://127.0.0.1:99999"], 2, "expected one like http"),
        ([*RUN, "--mcp", "mcp.json"], 2, "mcpServers"),
        ([*RUN, "--mcp", "broken.json"], 2, "mcpServers"),
        ([*RUN, "--mcp", ""], 2, "got an empty string"),
        ([*RUN, "--approve", "yol"], 2, "did you mean 'yolo'"),
        ([*RUN, "--sandbox", "x"], 2, "expected one of"),
        ([*RUN, "--allow", "x"], 2, "names an unknown tool"),
        ([*RUN, "--agent-model", "x"], 2, "strong=qwen3:32b"),
        *(([*RUN, "--max-turns", number], 2, "--max-turns") for number in ("0", *NUMBERS)),
        *(([*RUN, f"--{name}", "x"], 2, "expected") for name in ("constraint", "guide", "guardrails", "prompt")),
    ],
    "serve": [
        (SERVE, 2, "cannot listen"),
        (["serve", "--upstream", DEAD, "--host", ""], 2, "--host is empty"),
        (["serve", "--upstream", "ftp://x"], 2, "expected a URL like http"),
        *(([*SERVE, f"--{name}", "dir"], 2, "dir") for name in ("record", "profile", "template")),
        ([*SERVE, "--prompts", "missing"], 2, "folder of prompt templates not found"),
        ([*SERVE, "--profile", LONG], 2, "existing profiles: none"),
        ([*SERVE, "--style", "x"], 2, "expected compact"),
        *(([*SERVE, "--port", number], 2, "--port") for number in ("70000", *NUMBERS)),
        *(([*SERVE, "--workers", number], 2, "--workers") for number in ("0", "257", *NUMBERS)),
        (["mcp", "--root", "missing"], 2, "pass a directory"),
        (["mcp", "--api-key", "x"], 2, "needs --port"),
        (["mcp", "--dialect", "x"], 2, "unknown dialect"),
        (["mcp", "--approve", "x"], 2, "expected ask"),
    ],
    "probe": [
        (["probe"], 2, "the model must be named"),
        (["eval"], 2, "the model must be named"),
        (["probe", "--base-url", DEAD], 3, "nothing answers"),
        (EVAL, 3, "nothing answers"),
        (["probe", "--base-url", DEAD, "--record", "dir"], 2, "cannot record"),
        (["probe", "--base-url", DEAD, "--time-limit", "0"], 2, "--time-limit"),
        ([*EVAL, "--way", "our"], 2, "expected bare, ours, agent"),
        ([*EVAL, "--also", "x"], 2, "expected NAME=URL"),
        ([*EVAL, "--kind", "x"], 2, "expected one of:"),
        *(([*EVAL, "--runs", number], 2, "--runs") for number in ("0", *NUMBERS)),
        *(
            (["eval", "--list", "--suite", file], 2, "")
            for file in ("missing", "missing.toml", "dir", "bad.toml", "wrong.toml", "fails.py", "", f"{LONG}.toml")
        ),
    ],
    "recordings": [
        *((["replay", file], 2, "transcript .*not found|cannot read") for file in ("missing", "a.txt/b", "a\0b", LONG)),
        (["replay", "dir"], 2, r"no \*.jsonl"),
        *((["replay", file], 2, "") for file in ("a.txt", "one.jsonl", "binary.bin", "empty", "header.jsonl")),
        (["replay", "--approve", "yolo"], 2, "--run-commands"),
        *((["view", file, "--html", "v.html"], 2, "") for file in ("missing", "dir", "a.txt", "a\0b", "empty", LONG)),
        (["view", "one.jsonl", "--html", "v.html"], 2, "'kind' is missing"),
        (["view", "kind.jsonl", "--html", "v.html"], 2, "unknown kind 'other'"),
        *((["export", file, "--out", "-"], 2, "") for file in ("missing", "dir", "one.jsonl", "binary.bin", LONG)),
        (["export", "one.jsonl", "--out", "a.txt"], 2, "already exists"),
        (["export", "one.jsonl", "--out", LONG], 2, "File name too long"),
        (["export", "one.jsonl", "--out", "-", "--as", "x"], 2, "expected openai"),
        (["export", "one.jsonl", "--out", "-", "--only", "x"], 2, "expected valid"),
    ],
    "tool": [
        *(([*ADD, "--parameters-file", file], 2, "") for file in FILES),
        *(([*ADD, "--config-file", file], 2, "") for file in ("dir", "binary.bin", "deep.json", "empty", LONG)),
        ([*ADD, "--parameters", "{"], 2, "not valid JSON"),
        ([*ADD, "--parameters", "3"], 2, "must be an object"),
        (["tool", "list", "--tools", "missing"], 2, "tools file not found"),
        (["tool", "list", "--tools", LONG], 2, "File name too long"),
        (["tool", "remove", "x", "--force", "--config-file", "latin1.txt"], 2, "not UTF-8"),
        (["tool", "view", "ShowFileTre"], 3, "did you mean 'ShowFileTree'"),
        (["plugin", "vlm"], 2, "expected vllm"),
        (["demo", "--keep", "dir"], 2, "already exists"),
        (["demo", "--keep", "a.txt/b"], 2, "Not a directory"),
        (["doctor", "-w", "missing", "--sandbox", "x"], 2, ""),
        (["serv"], 2, "serve"),
    ],
    "serve options": [
        ([*SERVE, "--port", "70000"], 2, "'--port': must be less than or equal to 65535, got '70000'"),
        ([*SERVE, "--max-streams", "many"], 2, "'--max-streams': must be an integer, got 'many'"),
        ([*SERVE, "--constraint", "x"], 2, "expected auto, off,"),
        *(([*SERVE, "--allow-origin", each], 2, "expected an origin") for each in ("localhost", "*", "http://a/b", "")),
        *(([*SERVE, "--trusted-host", each], 2, "expected a host name") for each in ("http://a", "*.a", "")),
        ([*SERVE[:3], "--port", "0", "--store", "missing/x.db"], 2, "^adapter: cannot store .*: No such file or dir"),
        ([*SERVE, "--config", "words.toml"], 2, "'--max-streams', from words.toml: must be an integer, got 'four'"),
        ([*SERVE, "--config", "model.toml"], 2, "model.toml: models.m.format: unknown format 'hermez'"),
        (["--verson"], 2, "--version"),
    ],
}  # fmt: skip
"""By group: the words, the exit code, and a pattern that the message has."""


def faults(done, code, says):
    """Return the faults in a command's output and exit code."""
    message = " ".join(re.sub(r"[│╭╮╰╯─]", " ", done.stderr).split())
    told = message if message else done.stdout
    if done.returncode != code:
        yield f"exit code {done.returncode}, expected {code}"
    if found := RAW_WORDING.search(done.stderr + done.stdout):
        yield f"says {found[0]!r}"
    if done.stderr.count("\n") > MAX_LINES and "Usage:" not in done.stderr:
        yield f"{done.stderr.count(chr(10))} lines"
    if not re.search(says, told):
        yield f"does not say {says!r}"


AT_ONCE = 12
"""Cases in one test, so that it ends in time on a busy machine."""
CHUNKS = {
    f"{group}-{start}": cases[start : start + AT_ONCE]
    for group, cases in CASES.items()
    for start in range(0, len(cases), AT_ONCE)
}


@pytest.mark.parametrize("chunk", CHUNKS)
def test_wrong_input_gives_a_short_message_and_its_exit_code(chunk, folder, tmp_path):
    env = {"HOME": str(tmp_path), "COLUMNS": "200", "TERMINAL_WIDTH": "200", "OPENAI_BASE_URL": "", "OLLAMA_HOST": ""}
    wrong = []
    for words, code, says in CHUNKS[chunk]:
        done = adapter(*words, cwd=folder, env=env)
        shown = [word[:30] for word in words]
        wrong += [f"{shown}: {fault}: {(done.stderr or done.stdout)[-300:]}" for fault in faults(done, code, says)]
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize("words", [["run", "hi"], ["probe"], ["eval"], ["prompt", "--tokens"]])
def test_non_http_server_is_not_a_model_server(words, tmp_path):
    """Exit code 3, as if nothing listened."""
    server, url = not_http()
    with server:
        done = adapter(*words, "--base-url", url, cwd=tmp_path)
    assert not list(faults(done, 3, "nothing answers")), done.stderr


HOMES = ["/dev/null", "/sys"]
"""Places where not even root can create a folder: below a device, and in a read-only file system."""


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize("words", [["demo"], ["setup"], ["tool", "install"], ADD])
def test_unwritable_home_is_reported(words, home, tmp_path):
    variables = dict.fromkeys(("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"), "")
    done = adapter(*words, cwd=tmp_path, env={"HOME": home, **variables})
    says = "XDG_CACHE_HOME" if words[0] in ("demo", "setup") else "cannot write"
    assert done.returncode == 2
    assert says in " ".join(done.stderr.split())
    assert not RAW_WORDING.search(done.stderr)


@pytest.mark.parametrize("value", ["lots", "0"])
def test_invalid_variable_is_named(value, tmp_path):
    done = adapter(*SERVE, cwd=tmp_path, env={"ADAPTER_MAX_STREAMS": value, "COLUMNS": "200", "TERMINAL_WIDTH": "200"})
    assert not list(faults(done, 2, rf"'--max-streams', from ADAPTER_MAX_STREAMS: must be .*, got '{value}'")), done


def test_serve_warns_of_an_unreachable_model_server_and_a_misspelled_variable(tmp_path):
    import time

    from tests.command_line import started

    variables = {"ADAPTER_MAX_STREAM": "4", "ADAPTER_OTHER": "1"}
    with started("serve", "--upstream", DEAD, "--port", "0", cwd=tmp_path, env=variables) as run:
        run.first_lines()
        until = time.monotonic() + 60
        while "no HTTP server answers" not in run.stderr.read_text() and time.monotonic() < until:
            time.sleep(0.01)
        misspelled, serving, unreachable = run.stderr.read_text().splitlines()
        assert misspelled == "warning: ADAPTER_MAX_STREAM has no effect; did you mean ADAPTER_MAX_STREAMS?"
        assert serving.startswith("serving http://")
        assert unreachable.startswith(f"warning: no HTTP server answers at {DEAD}/v1")


def test_server_outlives_the_reader_of_its_log(tmp_path):
    """Its log is a pipe that a program closes after the first line."""
    command = [sys.executable, "-m", "adapter", "serve", "--upstream", DEAD, "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr
        address = server.stderr.readline().split()[1].rstrip(",")
        server.stderr.close()
        try:
            for _ in range(2):  # the first one logs
                assert send(address, "/v1/models")[0] == 502
        finally:
            server.terminate()
