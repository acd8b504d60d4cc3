"""Without the modules that Windows lacks, everything works except commands, which are tested on Windows itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import openai

from adapter.integrations.pytest import assert_calls
from tests.command_line import adapter, started
from tests.scripted_server import CHAT, ScriptedServer, as_json
from tests.server.test_wrap import ASK, CALL, TOOLS, completion

HERE = Path(__file__).parent / "as_windows.py"


def as_windows(*words: object, **where: Any) -> str:
    """Return the command's output on both streams."""
    done = adapter(HERE, *words, **where)
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout + done.stderr


def test_every_module_can_be_imported():
    """Also the modules of paths, the sandbox and processes, which report a missing module when they are used."""
    assert as_windows() == ""


def test_texts_are_read_and_prompts_written(tmp_path):
    """`parse`, `prompt`, and `derive`, which renders a template in a separate process."""
    said = tmp_path / "said.txt"
    said.write_text(CALL, encoding="utf-8")
    assert "call: read_file" in as_windows("parse", said)
    assert "apply_edit" in as_windows("prompt", "--format", "hermes")
    template = tmp_path / "chat_template.jinja"
    template.write_text(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        "[CALL]{{ {'name': c.function.name, 'arguments': c.function.arguments} | tojson }}[/CALL]{% endfor %}"
        "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}",
        encoding="utf-8",
    )
    assert "[CALL]" in as_windows("derive", template)


def test_serve_records_and_view_shows(scripted, tmp_path):
    """A client's whole request, and the page that shows it."""
    scripted.on(CHAT, as_json(200, completion(CALL)))
    said, page = tmp_path / "said.jsonl", tmp_path / "page.html"
    words = (HERE, "serve", "--upstream", scripted.url, "--port", "0", "--record", said)
    with started(*words) as run:
        url = run.first_lines().split()[1].rstrip(",")
        with openai.OpenAI(base_url=url, api_key="k", max_retries=0) as client:
            answer = client.chat.completions.create(model="qwen3", messages=ASK, tools=TOOLS)
    assert_calls(answer, [("read_file", {"path": "a.py"})])
    assert "Traceback" not in as_windows("view", said, "--html", page)
    assert "read_file" in page.read_text(encoding="utf-8")


WRAPPED = """
import sys
from openai import OpenAI
from tests.as_windows import dress_up
plain = OpenAI(base_url=sys.argv[1], api_key="k")
dress_up()
from adapter import patch_text, wrap
client = wrap(plain)
answer = client.chat.completions.create(model="qwen3", messages=[{"role": "user", "content": "Read"}], tools=[
    {"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}])
print(answer.choices[0].message.tool_calls[0].function.arguments)
print(patch_text("port = 8000\\n", "<<<<<<< SEARCH\\nport = 8000\\n=======\\nport = 9000\\n>>>>>>> REPLACE").text)
"""


def test_a_client_is_wrapped_and_a_text_patched(scripted: ScriptedServer, tmp_path):
    """In a program of the user."""
    scripted.on(CHAT, as_json(200, completion(CALL)))
    program = tmp_path / "program.py"
    program.write_text(WRAPPED, encoding="utf-8")
    done = adapter(program, f"{scripted.url}/v1")
    assert (done.stdout, done.stderr) == (f"{json.dumps({'path': 'a.py'})}\nport = 9000\n\n", "")


def test_a_file_is_edited_and_the_edit_undone(tmp_path):
    """With paths that are checked before and after each call, and Windows' kind of lock."""
    (tmp_path / "a.py").write_text("port = 8000\n", encoding="utf-8")
    (tmp_path / "patches.json").write_text('[{"old_text": "8000", "new_text": "9000"}]', encoding="utf-8")
    assert "+port = 9000" in as_windows("edit", "a.py", "--patches", "patches.json", cwd=tmp_path)
    assert (tmp_path / "a.py").read_text(encoding="utf-8") == "port = 9000\n"
    assert "undone: edit a.py" in as_windows("undo", cwd=tmp_path)
    assert (tmp_path / "a.py").read_text(encoding="utf-8") == "port = 8000\n"


WORKSPACE = """
import sys
from tests.as_windows import dress_up
dress_up()
from adapter import Workspace
with Workspace(sys.argv[1], approve="yolo") as workspace:
    for name, arguments in (
        ("read_file", {"path": "src\\\\a.py"}),
        ("read_file", {"path": "src/nul.txt"}),
        ("read_file", {"path": "a.py::$DATA"}),
        ("read_file", {"path": "LONGNA~1.PY"}),
        ("read_file", {"path": "C:\\\\Windows\\\\win.ini"}),
        ("read_file", {"path": "C:a.py"}),
        ("read_file", {"path": "..\\\\secret"}),
        ("write_file", {"path": ".git\\\\hooks\\\\x", "content": ""}),
    ):
        result = workspace.run(name, arguments)
        print((result.content if result.ok else result.error).splitlines()[0])
"""


def test_paths_in_the_spelling_of_windows(tmp_path):
    """Backslashes separate names. Other drives, devices, streams, short names and git's data are refused."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("x = 1\n", encoding="utf-8")
    program = tmp_path / "program.py"
    program.write_text(WORKSPACE, encoding="utf-8")
    done = adapter(program, tmp_path)
    assert done.stdout, done.stderr
    first, *refused = done.stdout.splitlines()
    assert first == "x = 1", done.stdout + done.stderr
    expected = [
        "reserved",
        "':'",
        "full name",
        "outside",
        "outside",
        "outside",
        "git's own data",
    ]
    for line, words in zip(refused, expected, strict=True):
        assert words in line, line


def test_doctor_reports_windows_limits(tmp_path):
    said = as_windows("doctor", cwd=tmp_path)
    assert "checked before and after each call" in said
    assert "on Windows, run adapter in WSL" in said
