"""Gives tools more than fits anywhere, and measures what each costs in a process of its own.

    python -m benchmarks.floods
    python -m benchmarks.floods --scale 0.01 --only sparse stream

A sparse file of 20 GB, one line of 1 GB, a directory with 1,000,000 entries, files that never
end, answers that unpack to gigabytes, and request bodies of 200 MB. For each: the time, what
the process needed at its peak beyond what it had needed before (``ru_maxrss``), whether it was
done or refused, and how the text for the model begins.
Bars: 200 MB and 30 s (a copy of 1 GB may take as long as the disk does). Exits with 1 when one is missed.

``--scale``: of the sizes, for a quick look; the sparse file costs nothing and stays as it is.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from adapter.events import JsonObject
from adapter.host import Host, WebAccess
from adapter.parser import parse
from adapter.workspace import Workspace
from benchmarks import stopping
from tests.formats.soup import TOOLS
from tests.serving import serving

MEMORY_BAR_MB = 200.0
TIME_BAR_S = 30.0
SPARSE = 20 * 1024**3
LINE = 1024**3
ENTRIES = 1_000_000
BODY = 200 * 1024**2
BOMB = 2 * 1024**3
SHOWN = 90


@dataclass(frozen=True, slots=True)
class Cost:
    """What one case took; ``text``: what it gave."""

    seconds: float
    megabytes: float
    ok: bool
    text: str


@dataclass(frozen=True, slots=True)
class Case:
    """``lay``: what to make in the workspace first, given the scale. ``run``: whether it was done, and the text.
    ``is_program``: an installed program does it, whose memory and time are its own. ``is_server``: the memory
    that counts is that of `adapter serve`."""

    lay: Callable[[Path, float], None]
    run: Callable[[Path], tuple[bool, str]]
    is_program: bool = False
    is_server: bool = False


# ---------------------------------------------------------------------- the floods


def lay_nothing(folder: Path, scale: float) -> None:
    pass


def lay_sparse(name: str) -> Callable[[Path, float], None]:
    """A file of zeros that takes no room; a text of 20 GB that looks like one at its start is `lay_text`."""

    def lay(folder: Path, _scale: float) -> None:
        with (folder / name).open("wb") as file:
            file.truncate(SPARSE)

    return lay


def lay_text(name: str) -> Callable[[Path, float], None]:
    """20 GB that begin with 10,000 lines of text; then a hole."""

    def lay(folder: Path, _scale: float) -> None:
        with (folder / name).open("wb") as file:
            file.writelines(b"line %d of many, with a needle\n" % number for number in range(10_000))
            file.truncate(SPARSE)

    return lay


def lay_line(name: str) -> Callable[[Path, float], None]:
    def lay(folder: Path, scale: float) -> None:
        block = b"a needle, " * 104_858
        with (folder / name).open("wb") as file:
            for _ in range(max(int(LINE * scale) // len(block), 20)):
                file.write(block)

    return lay


def lay_entries(folder: Path, scale: float) -> None:
    """One directory, many empty files, and one that has something in it."""
    (folder / "many").mkdir()
    directory = os.open(folder / "many", os.O_RDONLY)
    for number in range(int(ENTRIES * scale)):
        os.close(os.open(f"f{number:07d}.py", os.O_WRONLY | os.O_CREAT, dir_fd=directory))
    os.close(directory)
    (folder / "many" / "f0000500.py").write_text("def needle(): ...\n", encoding="utf-8")


def lay_endless(folder: Path, _scale: float) -> None:
    """Things that never end when they are read: links to devices, a FIFO, and devices where we may make them."""
    (folder / "zero").symlink_to("/dev/zero")
    (folder / "random").symlink_to("/dev/urandom")
    os.mkfifo(folder / "fifo")
    with suppress(PermissionError):
        os.mknod(folder / "device", 0o666 | 0o020000, os.makedev(1, 5))


# ----------------------------------------------------------------------- the tools


def call(dialect: str, tool: str, arguments: JsonObject) -> Callable[[Path], tuple[bool, str]]:
    def run(folder: Path) -> tuple[bool, str]:
        host = Host(state=str(folder.parent / "state"), web=WebAccess(allow_loopback=True, upgrade=False))
        with Workspace(folder, dialect, "yolo", state=folder.parent / "state", host=host) as workspace:
            result = workspace.run(tool, arguments)
            return result.ok, result.content

    return run


blade = partial(call, "blade")
maki = partial(call, "maki")
proxyai = partial(call, "proxyai")
proto = partial(call, "proto")
promptly = partial(call, "promptly")


@contextmanager
def answering(coding: str, body: Callable[[], Iterator[bytes]]) -> Iterator[str]:
    """The address of a page with this body."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Encoding", coding)
            self.end_headers()
            with suppress(OSError):
                for block in body():
                    self.wfile.write(block)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


def fetched(coding: str, body: Callable[[], Iterator[bytes]]) -> Callable[[Path], tuple[bool, str]]:
    def run(folder: Path) -> tuple[bool, str]:
        with answering(coding, body) as url:
            return maki("webfetch", {"url": url, "timeout": 20})(folder)

    return run


def bomb() -> Iterator[bytes]:
    """Members of gzip data one after the other, 2 GB of zeros."""
    member = gzip.compress(bytes(16 * 1024**2))
    for _ in range(BOMB // (16 * 1024**2)):
        yield member


def single_bomb() -> Iterator[bytes]:
    """2 GB of zeros as one member, made before the measuring begins in `prepared`."""
    import zlib

    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = bytes(16 * 1024**2)
    for _ in range(BOMB // len(block)):
        yield packer.compress(block)
    yield packer.flush()


def endless() -> Iterator[bytes]:
    while True:
        yield bytes(65_536)


def dripping() -> Iterator[bytes]:
    while True:
        yield b"x"
        time.sleep(0.2)


def posted(content: Callable[[], Iterator[bytes]], *, chunked: bool) -> Callable[[Path], tuple[bool, str]]:
    """A request to `adapter serve`; its memory is what counts: that of our only child."""

    def run(_: Path) -> tuple[bool, str]:
        with serving("http://127.0.0.1:9") as url:
            address = urlsplit(url)
            connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
            headers = {"Content-Type": "application/json"}
            if chunked:
                headers["Transfer-Encoding"] = "chunked"
            else:
                headers["Content-Length"] = str(sum(map(len, content())))
            try:
                with suppress(BrokenPipeError, ConnectionResetError):
                    connection.request("POST", "/v1/chat/completions", content(), headers, encode_chunked=chunked)
                answer = connection.getresponse()
                return answer.status == 200, f"{answer.status} {answer.read(2_000).decode()}"
            except (OSError, http.client.HTTPException) as error:
                return False, f"the connection was closed: {error!r}"
            finally:
                connection.close()

    return run


def large_body(size: int) -> Callable[[], Iterator[bytes]]:
    def body() -> Iterator[bytes]:
        yield b'{"model": "m", "tools": [{"type": "function", "function": {"name": "f"}}], "messages": [{"content": "'
        for _ in range(size // 1_000_000):
            yield b"x" * 1_000_000
        yield b'", "role": "user"}]}'

    return body


def nested_body(size: int) -> Callable[[], Iterator[bytes]]:
    """Small values that take many times their size once they are read."""

    def body() -> Iterator[bytes]:
        yield b'{"model": "m", "tools": ['
        for _ in range(size // 999_999):
            yield b"[]," * 333_333
        yield b"[]]}"

    return body


def parsed(text: Callable[[], str]) -> Callable[[Path], tuple[bool, str]]:
    def run(_: Path) -> tuple[bool, str]:
        answer = parse(text(), TOOLS)
        return not answer.invalid, f"{len(answer.calls)} calls, {len(answer.content)} characters of content"

    return run


def printing(command: str) -> Callable[[Path], tuple[bool, str]]:
    return blade("run_command", {"command": command})


CASES: dict[str, Case] = {
    "sparse: read_file": Case(lay_sparse("big"), blade("read_file", {"path": "big"})),
    "sparse: read_file_range": Case(lay_sparse("big"), blade("read_file_range", {"path": "big", "end_line": 5})),
    "sparse: read": Case(lay_sparse("big"), maki("read", {"path": "big"})),
    "sparse: Read": Case(lay_sparse("big"), proxyai("Read", {"file_path": "big"})),
    "sparse: grep_search": Case(lay_sparse("big"), blade("grep_search", {"pattern": "needle", "path": "."})),
    "sparse: grep of the file": Case(lay_sparse("big"), blade("grep_search", {"pattern": "needle", "path": "big"})),
    "sparse: index": Case(lay_sparse("big.py"), maki("index", {"path": "big.py"})),
    "sparse: IntelliJSearch": Case(lay_sparse("big.py"), proxyai("IntelliJSearch", {"pattern": "needle"})),
    "sparse: codebase_search": Case(lay_sparse("README.md"), blade("codebase_search", {"query": "needle"})),
    "sparse: edit": Case(lay_sparse("big"), maki("edit", {"path": "big", "old_string": "a", "new_string": "b"})),
    "sparse: write_file": Case(lay_sparse("big"), blade("write_file", {"path": "big", "content": "x"})),
    "sparse: copy_file": Case(lay_sparse("big"), blade("copy_file", {"source": "big", "destination": "copy"})),
    "sparse: move_file": Case(lay_sparse("big"), blade("move_file", {"source": "big", "destination": "moved"})),
    "sparse: delete_file": Case(lay_sparse("big"), blade("delete_file", {"path": "big"})),
    "sparse: open_file": Case(lay_sparse("big"), blade("open_file", {"path": "big"})),
    "sparse: skill": Case(lay_sparse(".claude/skills/a/SKILL.md"), maki("skill", {"name": "a"})),
    "sparse: .gitignore": Case(lay_sparse(".gitignore"), blade("grep_search", {"pattern": "needle"})),
    "text: ShowFileContents (sed)": Case(
        lay_text("big"), promptly("ShowFileContents", {"file": "big", "startLine": 1, "lineCount": 5}), is_program=True
    ),
    "text: read_file": Case(lay_text("big"), blade("read_file", {"path": "big"})),
    "text: read_file_range": Case(
        lay_text("big"), blade("read_file_range", {"path": "big", "start_line": 9_990, "end_line": 9_995})
    ),
    "text: a line beyond the end": Case(
        lay_text("big"), blade("read_file_range", {"path": "big", "start_line": 1_000_000, "end_line": 1_000_001})
    ),
    "text: read": Case(lay_text("big"), maki("read", {"path": "big", "offset": 9_999})),
    "text: grep_search": Case(lay_text("big"), blade("grep_search", {"pattern": "needle"})),
    "one line: read_file": Case(lay_line("big"), blade("read_file", {"path": "big"})),
    "one line: read_file_range": Case(lay_line("big"), blade("read_file_range", {"path": "big", "end_line": 3})),
    "one line: read": Case(lay_line("big"), maki("read", {"path": "big"})),
    "one line: Read": Case(lay_line("big"), proxyai("Read", {"file_path": "big"})),
    "one line: read_file of proto": Case(lay_line("big"), proto("read_file", {"path": "big", "limit": 3})),
    "one line: grep_search": Case(lay_line("big"), blade("grep_search", {"pattern": "needle"})),
    "one line: edit": Case(lay_line("big"), maki("edit", {"path": "big", "old_string": "a", "new_string": "b"})),
    "one line: index": Case(lay_line("big.py"), maki("index", {"path": "big.py"})),
    "one line: copy_file": Case(lay_line("big"), blade("copy_file", {"source": "big", "destination": "copy"})),
    "one line: SearchText": Case(lay_line("big"), promptly("SearchText", {"pattern": "needle", "path": "."})),
    "entries: list_directory": Case(lay_entries, blade("list_directory", {"path": "many"})),
    "entries: get_workspace_structure": Case(lay_entries, blade("get_workspace_structure", {"depth": 3})),
    "entries: find_files": Case(lay_entries, blade("find_files", {"pattern": "f0000500"})),
    "entries: find_files_glob": Case(lay_entries, blade("find_files_glob", {"pattern": "**/*5.py"})),
    "entries: glob": Case(lay_entries, maki("glob", {"pattern": "**/*.py"})),
    "entries: grep_search": Case(lay_entries, blade("grep_search", {"pattern": "needle"})),
    "entries: IntelliJSearch": Case(lay_entries, proxyai("IntelliJSearch", {"pattern": "needle"})),
    "entries: codebase_search": Case(lay_entries, blade("codebase_search", {"query": "needle"})),
    "entries: list_directory of proto": Case(lay_entries, proto("list_directory", {"path": "many"})),
    "entries: copy_file": Case(lay_entries, blade("copy_file", {"source": "many", "destination": "copy"})),
    "entries: move_file": Case(lay_entries, blade("move_file", {"source": "many", "destination": "moved"})),
    "entries: delete_file": Case(lay_entries, blade("delete_file", {"path": "many", "recursive": True})),
    "entries: read_file of none": Case(lay_entries, blade("read_file", {"path": "many/f00005001.py"})),
    "endless: read_file of /dev/zero": Case(lay_endless, blade("read_file", {"path": "zero"})),
    "endless: read_file of a device": Case(lay_endless, blade("read_file", {"path": "device"})),
    "endless: read_file of a FIFO": Case(lay_endless, blade("read_file", {"path": "fifo"})),
    "endless: grep_search": Case(lay_endless, blade("grep_search", {"pattern": "needle"})),
    "endless: copy_file": Case(lay_endless, blade("copy_file", {"source": "fifo", "destination": "copy"})),
    "endless: index": Case(lay_endless, maki("index", {"path": "fifo"})),
    "endless: list_directory": Case(lay_endless, blade("list_directory", {})),
    "stream: gzip, many members": Case(lay_nothing, fetched("gzip", bomb)),
    "stream: gzip, one member": Case(lay_nothing, fetched("gzip", single_bomb)),
    "stream: twice gzip": Case(lay_nothing, fetched("gzip, gzip", bomb)),
    "stream: brotli": Case(lay_nothing, fetched("br", endless)),
    "stream: without end": Case(lay_nothing, fetched("identity", endless)),
    "stream: drop by drop": Case(lay_nothing, fetched("identity", dripping)),
    "output: yes": Case(lay_nothing, printing("timeout 5 yes")),
    "output: /dev/zero": Case(lay_nothing, printing("head -c 3G /dev/zero")),
    "output: one line": Case(lay_nothing, printing("head -c 1G /dev/zero | tr '\\0' x")),
    "server: a body of 200 MB": Case(lay_nothing, posted(large_body(BODY), chunked=False), is_server=True),
    "server: 200 MB in chunks": Case(lay_nothing, posted(large_body(BODY), chunked=True), is_server=True),
    "server: a body of 30 MB": Case(lay_nothing, posted(large_body(30_000_000), chunked=False), is_server=True),
    "server: 30 MB of empty lists": Case(lay_nothing, posted(nested_body(30_000_000), chunked=False), is_server=True),
    "server: 30 MB of open brackets": Case(
        lay_nothing, posted(lambda: iter([b"[" * 1_900_000]), chunked=False), is_server=True
    ),
    "model: 20 MB of text": Case(lay_nothing, parsed(lambda: "some words, " * 1_750_000)),
    "model: an argument of 5 MB": Case(
        lay_nothing,
        parsed(lambda: '<tool_call>{"name": "read_file", "arguments": {"path": "' + "x" * 5_000_000),
    ),
}


# ---------------------------------------------------------------------- measuring


def measured(name: str, folder: Path) -> Cost:
    """Run one case in this process."""
    case = CASES[name]
    who = resource.RUSAGE_CHILDREN if case.is_server else resource.RUSAGE_SELF
    if case.is_server:
        posted(large_body(0), chunked=False)(folder)
    else:
        (folder.parent / "usual").mkdir(exist_ok=True)
        blade("list_directory", {})(folder.parent / "usual")
    before = resource.getrusage(who).ru_maxrss
    started = time.monotonic()
    ok, text = case.run(folder)
    return Cost(time.monotonic() - started, (resource.getrusage(who).ru_maxrss - before) / 1024, ok, text)


def in_own_process(name: str, folder: Path, limit_s: float) -> Cost:
    """The same in a fresh interpreter, whose memory nobody else has used."""
    words = [sys.executable, "-m", "benchmarks.floods", "--run", name, "--folder", str(folder)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        return Cost(limit_s, float("nan"), False, f"not over after {limit_s:g} s")
    if done.returncode:
        return Cost(0.0, float("nan"), False, f"died: {done.stderr[-500:]}")
    return Cost(**json.loads(done.stdout))


def sweep(names: list[str], folder: Path, scale: float) -> Iterator[tuple[str, Cost]]:
    """Each case; what several need is made once."""
    laid: dict[Callable[[Path, float], None], Path] = {}
    for number, name in enumerate(names):
        case = CASES[name]
        shared = case.lay is lay_entries
        if not shared or case.lay not in laid:
            place = folder / str(number) / "ws"
            (place / ".claude/skills/a").mkdir(parents=True)
            case.lay(place, scale)
            laid[case.lay] = place
        place = laid[case.lay]
        yield name, in_own_process(name, place, limit_s=300)
        if not shared:
            subprocess.run(["rm", "-rf", str(place.parent)], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="*", help="names of cases, or their beginnings")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--folder", type=Path, help="where to work; needs 3 GB and 1,000,000 inodes")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        cost = measured(options.run, options.folder)
        fields = (cost.seconds, cost.megabytes, cost.ok, cost.text)
        print(json.dumps(dict(zip(("seconds", "megabytes", "ok", "text"), fields, strict=True))))
        return 0
    names = [name for name in CASES if not options.only or any(name.startswith(start) for start in options.only)]
    missed = []
    print("| flood | s | MB more | | the result begins |")
    print("|---|--:|--:|---|---|")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for name, cost in sweep(names, Path(folder), options.scale):
            shown = " ".join(cost.text.split())[:SHOWN].replace("|", "\\|")
            verdict = "done" if cost.ok else "refused"
            print(f"| {name} | {cost.seconds:.1f} | {cost.megabytes:.0f} | {verdict} | {shown} |", flush=True)
            if not cost.megabytes <= MEMORY_BAR_MB or (cost.seconds > TIME_BAR_S and not CASES[name].is_program):
                missed.append(f"{name}: {cost.megabytes:.0f} MB, {cost.seconds:.1f} s: {cost.text[:1000]}")
    for line in missed:
        print("MISSED", line)
    return 1 if missed else 0


if __name__ == "__main__":
    stopping.run(main)
