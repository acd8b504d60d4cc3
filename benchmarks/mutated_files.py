"""Read damaged files: each must be read or give one clear error, within limits on time and memory.

    python -m benchmarks.mutated_files [--count N] [--seed N]

Each file is a valid one of its kind with some bytes changed, removed, repeated or replaced by a boundary value. A child
process reads it with the function that the program uses; any exception other than the program's own errors would be a
traceback for the user.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import resource
import struct
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from adapter.backends.probe_profiles import load_profile
from adapter.backends.template_files import load_chat_template
from adapter.cli.user_config import read_config
from adapter.core.bounded_parsing import parse_json
from adapter.core.errors import AdapterError
from adapter.evaluation.eval_view_data import view_runs
from adapter.evaluation.toml_scenarios import read_scenarios
from adapter.grammars.gbnf import build_gbnf
from adapter.integrations.batch.row_parser import RowParser, RowSettings
from adapter.integrations.mcp.server_config import parse_servers
from adapter.parsing.format_file import read_format_file
from adapter.recording.transcript import Transcript
from adapter.tools.operations import ReadText
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet
from adapter.workspace import Workspace
from adapter.workspace.capabilities.skills import parse_skill
from adapter.workspace.capabilities.web_fetch import convert_html

MAX_SECONDS = 5.0
"""Maximum processor time for one file, in seconds."""
MAX_BYTES = 500 << 20
"""Maximum memory that reading one file adds, in bytes."""
BORDERS = (b"\0", b"\xff", b"\xff" * 8, b"\x7f" + b"\xff" * 7, b"\0" * 8, b"[", b"{", b'"', b"<", b"'", b"\n", b"-1")
ROOT = Path(__file__).parents[1]


def gguf() -> bytes:
    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    words = struct.pack("<IIQ", 9, 8, 3) + text("<s>") + text("</s>") + text("a")
    types = struct.pack("<IIQ3i", 9, 5, 3, 3, 3, 1)
    values = [
        text("general.name") + struct.pack("<I", 8) + text("m"),
        text("tokenizer.ggml.tokens") + words,
        text("tokenizer.ggml.token_type") + types,
        text("tokenizer.ggml.bos_token_id") + struct.pack("<II", 4, 0),
        text("tokenizer.ggml.eos_token_id") + struct.pack("<II", 4, 1),
        text("tokenizer.chat_template") + struct.pack("<I", 8) + text("{% for m in messages %}{{ m }}{% endfor %}"),
    ]
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(values)) + b"".join(values)


def table(kind: str) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = pa.table({"text": ["<tool_call>", "b", None], "n": [1, 2, 3], "tags": [["x"], [], None]})
    sink = io.BytesIO()
    if kind == "parquet":
        pq.write_table(rows, sink)
    else:
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
    return sink.getvalue()


def pdf() -> bytes:
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << >> >>",
        b"<< /Length 20 >>\nstream\nBT (hello) Tj ET    \nendstream",
    ]
    body = b"".join(b"%d 0 obj\n%s\nendobj\n" % (number, each) for number, each in enumerate(objects, 1))
    return b"%PDF-1.5\n" + body + b"trailer << /Size 5 /Root 1 0 R >>\nstartxref\n0\n%%EOF\n"


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10\x08\2\0\0\0\x90\x91h6"
JPEG = b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0\xff\xc0\0\x11\x08\0\x10\0\x10\3\1\x22\0\2\x11\1\3\x11\1\xff\xd9"
HTML = b"<html><body><h1 class='a'>T</h1><p>One <b>two</b> <a href=\"/x\">three</a><!-- c --><table><tr><td>x</table>"
TOML = (ROOT / "adapter/evaluation/tables.toml").read_bytes()[:3_000]
SETTINGS = json.dumps(
    {"chat_template": "{{ x }}", "bos_token": "<s>", "added_tokens_decoder": {"1": {"content": "a", "special": True}}}
).encode()
SERVERS = b'{"mcpServers": {"a": {"command": "x", "args": ["y"], "env": {"A": "b"}}, "b": {"url": "http://h/mcp"}}}'
TRANSCRIPT = (
    b'{"kind": "header", "task": "t", "system": "", "dialect": "blade", "format": "hermes", "tools": []}\n'
    b'{"kind": "request", "number": 1, "messages": [{"role": "user", "content": "x"}]}\n'
    b'{"kind": "chunk", "text": "x"}\n'
)
RUNS = (
    b'{"eval": 1, "model": "m"}\n'
    b'{"fault": "", "seconds": 1, "messages": [], "scenario": "s", "way": "w", "number": 0}\n'
)


TOOLS = json.dumps([
    {
        "type": "function",
        "function": {
            "name": "t",
            "parameters": {
                "type": "object",
                "properties": {
                    "a": {"type": "string", "pattern": "^[a-z]{1,9}$", "enum": ["x", "y"]},
                    "n": {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 99}, {"type": "null"}]},
                    "l": {"type": "array", "items": {"$ref": "#/$defs/d"}, "maxItems": 3},
                },
                "required": ["a"],
                "$defs": {"d": {"type": "object", "additionalProperties": {"type": "number"}}},
            },
        },
    }
]).encode()  # fmt: skip
FORMAT = b"""name = "own"
body = "yaml"
head = "<call>\\nname: "
middle = "\\narguments:\\n"
tail = "\\n</call>"
indent = 2
"""
CONFIG = b'model = "m"\nbase_url = "http://127.0.0.1:1"\napprove = "ask"\n'
NOTEBOOK = json.dumps({
    "cells": [{"cell_type": "code", "source": ["x = 1\n"], "outputs": [], "metadata": {}, "execution_count": None}],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}).encode()  # fmt: skip


def text_of(path: Path) -> str:
    return path.read_text("utf-8", "replace")


def read_in_workspace(path: Path) -> None:
    with Workspace(path.parent, approve="yolo", state=path.parent.parent / "state") as workspace:
        workspace.read(ReadText(path.name))


def read_table(path: Path) -> None:
    from adapter.integrations.batch.arrow import iter_batches, read_block

    for block in iter_batches(path):
        read_block(RowParser(RowSettings()), block)


def read_tools(path: Path) -> None:
    """Match arguments to tool definitions, and constrain a model to them."""
    text = path.read_text("utf-8", "replace")
    RowParser(RowSettings(tools=text))
    build_gbnf(ToolSet([Tool.from_definition(each) for each in parse_json(text)]))


def edit_notebook(path: Path) -> None:
    with Workspace(path.parent, approve="yolo", state=path.parent.parent / "state") as workspace:
        workspace.run("search_replace", {"path": path.name, "old_text": "x = 1", "new_text": "x = 2"})
        workspace.run("file_outline", {"path": path.name})


KINDS: dict[str, tuple[str, Callable[[], bytes], Callable[[Path], object]]] = {
    "gguf": ("m.gguf", gguf, load_chat_template),
    "settings": ("tokenizer_config.json", lambda: SETTINGS, load_chat_template),
    "parquet": ("t.parquet", lambda: table("parquet"), read_table),
    "arrow": ("t.arrow", lambda: table("arrow"), read_table),
    "html": ("p.html", lambda: HTML, lambda path: convert_html(text_of(path), "markdown", 5.0)),
    "pdf": ("f.pdf", pdf, read_in_workspace),
    "png": ("f.png", lambda: PNG, read_in_workspace),
    "jpeg": ("f.jpg", lambda: JPEG, read_in_workspace),
    "toml": ("s.toml", lambda: TOML, read_scenarios),
    "profile": ("p.toml", lambda: b'format = "hermes"\nprompt = "own"\n', load_profile),
    "servers": ("mcp.json", lambda: SERVERS, lambda path: parse_servers(str(path))),
    "transcript": (
        "t.jsonl",
        lambda: TRANSCRIPT,
        lambda path: Transcript.from_text(path.read_text("utf-8", "replace")),
    ),
    "runs": ("r.jsonl", lambda: RUNS, lambda path: view_runs(path.read_text("utf-8", "replace"), "r")),
    "tools": ("t.json", lambda: TOOLS, read_tools),
    "format": ("f.toml", lambda: FORMAT, read_format_file),
    "config": ("c.toml", lambda: CONFIG, lambda path: read_config(path.parent / "elsewhere", path)),
    "notebook": ("n.ipynb", lambda: NOTEBOOK, edit_notebook),
    "skill": (
        "SKILL.md",
        lambda: b"---\nname: a\ndescription: >\n  b\n---\n# T\n",
        lambda path: parse_skill(path.read_text("utf-8", "replace"), "f"),
    ),
}


def mutate(data: bytes, random_: random.Random) -> bytes:
    """Return ``data`` with one to four changes."""
    changed = bytearray(data)
    for _ in range(random_.randint(1, 4)):
        at, length = random_.randrange(len(changed) + 1), random_.choice((1, 1, 2, 4, 8, 64))
        match random_.randrange(5):
            case 0 if at < len(changed):
                changed[at] ^= 1 << random_.randrange(8)
            case 1:
                del changed[at : at + length]
            case 2:
                changed[at:at] = changed[at : at + length] * random_.choice((1, 2, 1_000))
            case 3:
                border = random_.choice(BORDERS)
                changed[at : at + len(border)] = border
            case _:
                changed[at:at] = random_.choice(BORDERS) * random_.choice((1, 10, 100_000))
    return bytes(changed)


def read_one(kind: str, data: bytes, folder: Path) -> str:
    name, _, read = KINDS[kind]
    path = folder / "w" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    report, result = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(report)
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
            with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):  # noqa: PTH123
                os.write(result, _fault(read, path).encode())
        finally:
            os._exit(0)
    os.close(result)
    before = time.monotonic()
    with os.fdopen(report, "rb") as pipe:
        text = pipe.read().decode() or "the process died"
    _, _, usage = os.wait4(pid, 0)
    seconds = usage.ru_utime + usage.ru_stime
    if seconds > MAX_SECONDS:
        return f"{seconds:.1f} s of processor time ({time.monotonic() - before:.1f} s)"
    if (grown := usage.ru_maxrss * 1024 - resident()) > MAX_BYTES:
        return f"{grown >> 20} MB"
    return text.removeprefix("ok")


def _fault(read: Callable[[Path], object], path: Path) -> str:
    try:
        read(path)
    except AdapterError as error:
        return f"a message of {len(str(error))} characters" if len(str(error)) > 2_000 or not str(error) else "ok"
    except BaseException as error:  # noqa: BLE001 - a traceback for the user
        return f"{type(error).__name__}: {str(error)[:200]}"
    return "ok"


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def run(count: int, seed: int = 0, kinds: tuple[str, ...] = ()) -> list[str]:
    random_, faults = random.Random(seed), []
    names = kinds or tuple(KINDS)
    valid = {kind: KINDS[kind][1]() for kind in names}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            kind = names[number % len(names)]
            fault = read_one(kind, mutate(valid[kind], random_), Path(folder))
            faults += [f"{kind} {number}: {fault}"] if fault else []
    return faults


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--count", type=int, default=1_000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("kinds", nargs="*")
    chosen = options.parse_args()
    start = time.monotonic()
    faults = run(chosen.count, chosen.seed, tuple(chosen.kinds))
    for fault in faults:
        print("FAULT", fault)
    print(f"{chosen.count} files, {len(faults)} faults, {time.monotonic() - start:.0f} s")
    raise SystemExit(bool(faults))


if __name__ == "__main__":
    main()
