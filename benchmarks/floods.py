"""Give tools far too much input, and measure the cost of each in its own process.

    python -m benchmarks.floods
    python -m benchmarks.floods --scale 0.01 --only sparse stream

The inputs are a sparse file of 20 GB, a line of 1 GB, a directory with 1,000,000 entries, endless files, answers that
unpack to gigabytes, and request bodies of 200 MB. For each, the table shows the time, the additional peak memory
(``ru_maxrss``), whether the operation succeeded or was refused, and the beginning of the text for the model. Limits:
200 MB, 30 s (or the time that the disk needs to copy 1 GB), and a useful text: the result, or the reason and the next
step. Exits with 1 if a limit is exceeded.

``--scale`` reduces the sizes for a quick run, except the size of the sparse file, which takes no space.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import json
import os
import re
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

from adapter.core.events import JsonObject
from adapter.parsing.parser import parse
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host_capabilities import Host, WebAccess
from benchmarks import stopping
from tests.parsing.formats.soup import TOOLS
from tests.serving import serving_afresh

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
    """The cost of one case, and its ``text``."""

    seconds: float
    megabytes: float
    ok: bool
    text: str


@dataclass(frozen=True, slots=True)
class Case:
    """A flood and its limits.

    ``lay`` creates the input in the workspace, in a given scale; ``run`` returns whether the operation succeeded, and
    its text. ``gives`` is a pattern of a useful text: the result, or the reason and the next step. ``is_program``: an
    installed program does the work, with its own memory and time. ``is_server``: the memory of `adapter serve` counts.
    """

    lay: Callable[[Path, float], None]
    run: Callable[[Path], tuple[bool, str]]
    gives: str
    is_program: bool = False
    is_server: bool = False


# ---------------------------------------------------------------------- the floods


def lay_nothing(folder: Path, scale: float) -> None:
    pass


def lay_sparse(name: str) -> Callable[[Path, float], None]:
    """Return a function that creates a sparse file of 20 GB of zeros, which takes no disk space."""

    def lay(folder: Path, _scale: float) -> None:
        with (folder / name).open("wb") as file:
            file.truncate(SPARSE)

    return lay


def lay_text(name: str) -> Callable[[Path, float], None]:
    """Return a function that creates a sparse file of 20 GB that starts with 10,000 lines of text."""

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


def lay_gzip(name: str) -> Callable[[Path, float], None]:
    """Return a function that creates a file of 2 MB that expands to 2 GB."""

    def lay(folder: Path, _scale: float) -> None:
        (folder / name).write_bytes(b"".join(bomb()))

    return lay


def lay_entries(folder: Path, scale: float) -> None:
    """Create a directory with many empty files and one that has content."""
    (folder / "many").mkdir()
    directory = os.open(folder / "many", os.O_RDONLY)
    for number in range(int(ENTRIES * scale)):
        os.close(os.open(f"f{number:07d}.py", os.O_WRONLY | os.O_CREAT, dir_fd=directory))
    os.close(directory)
    (folder / "many" / "f0000500.py").write_text("def needle(): ...\n", encoding="utf-8")


def lay_endless(folder: Path, _scale: float) -> None:
    """Create files without an end: links to devices, a FIFO, and if permitted, a device."""
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
    """Serve a page with this body, and yield its address."""

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
    """Yield 2 GB of zeros as many members of gzip data."""
    member = gzip.compress(bytes(16 * 1024**2))
    for _ in range(BOMB // (16 * 1024**2)):
        yield member


def single_bomb() -> Iterator[bytes]:
    """Yield 2 GB of zeros as one gzip member, created in `prepared` before the measurement."""
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
    def run(_: Path) -> tuple[bool, str]:
        with serving_afresh("http://127.0.0.1:9") as url:
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
    """Return the function for a body of small values that take many times their size when parsed."""

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


Run = Callable[[Path], tuple[bool, str]]


def readers(path: str) -> dict[str, Run]:
    """Return all dialects' tools that read a text file."""
    return {
        "read_file": blade("read_file", {"path": path}),
        "read_file_range": blade("read_file_range", {"path": path, "end_line": 5}),
        "read": maki("read", {"path": path}),
        "Read": proxyai("Read", {"file_path": path}),
        "read_file of proto": proto("read_file", {"path": path, "limit": 3}),
        "ShowFileContents": promptly("ShowFileContents", {"file": path}),
        "ShowFileContents, lines": promptly("ShowFileContents", {"file": path, "startLine": 1, "lineCount": 5}),
    }


def searchers(path: str) -> dict[str, Run]:
    """Return all dialects' tools that search the contents of files. ProxyAI has none."""
    return {
        "grep_search": blade("grep_search", {"pattern": "needle", "path": path}),
        "grep": maki("grep", {"pattern": "needle", "path": path}),
        "grep_search of proto": proto("grep_search", {"pattern": "needle", "path": path}),
        "SearchText": promptly("SearchText", {"pattern": "needle", "path": path}),
        "RipGrep": promptly("RipGrep", {"pattern": "needle", "path": path}),
        "RipGrepWithGlob": promptly("RipGrepWithGlob", {"pattern": "needle", "glob": ["big*"], "path": path}),
    }


def each(flood: str, lay: Callable[[Path, float], None], gives: str, runs: dict[str, Run]) -> dict[str, Case]:
    return {f"{flood}: {name}": Case(lay, run, gives) for name, run in runs.items()}


WHOLE = {"read_file"}
"""Readers that return either the whole file or nothing."""
NOT_WHOLE = r"big is large \(\d+ bytes\) and cannot be read whole \(limit 16777216 bytes\); read a range of its lines"
NO_TEXT = r"big is large \(21474836480 bytes\) and is not UTF-8 text; use a command on it"
OUTSIDE, NO_FILE = (
    "is outside the workspace",
    "is not a regular file \\(a device, pipe or socket\\) which tools do not open",
)
NOT_SEARCHED = r"big was not searched: \d+ bytes, more than 4194304"


def only(names: set[str], runs: dict[str, Run]) -> dict[str, Run]:
    return {name: run for name, run in runs.items() if name in names}


def but(names: set[str], runs: dict[str, Run]) -> dict[str, Run]:
    return {name: run for name, run in runs.items() if name not in names}


CASES: dict[str, Case] = {
    **each("sparse", lay_sparse("big"), f"{NOT_WHOLE}|{NO_TEXT}", readers("big")),
    **each("sparse", lay_sparse("big"), "^No (matches|files)", searchers(".")),
    **each("sparse file", lay_sparse("big"), "big was not searched: it is a binary file", searchers("big")),
    "sparse: index": Case(lay_sparse("big.py"), maki("index", {"path": "big.py"}), "is larger than .* read a range"),
    "sparse: IntelliJSearch": Case(
        lay_sparse("big.py"), proxyai("IntelliJSearch", {"pattern": "needle"}), "No names match|its symbols were not"
    ),
    "sparse: codebase_search": Case(
        lay_sparse("README.md"), blade("codebase_search", {"query": "needle"}), "No matches for 'needle'"
    ),
    "sparse: edit": Case(
        lay_sparse("big"), maki("edit", {"path": "big", "old_string": "a", "new_string": "b"}), "big is too large"
    ),
    "sparse: SearchAndReplace": Case(
        lay_sparse("big"), promptly("SearchAndReplace", {"file": "big", "search": "a", "replace": "b"}), "is too large"
    ),
    "sparse: write_file": Case(lay_sparse("big"), blade("write_file", {"path": "big", "content": "x"}), "is too large"),
    "sparse: copy_file": Case(
        lay_sparse("big"), blade("copy_file", {"source": "big", "destination": "copy"}), "the copy is larger than"
    ),
    "sparse: move_file": Case(
        lay_sparse("big"), blade("move_file", {"source": "big", "destination": "moved"}), "Moved big to moved"
    ),
    "sparse: delete_file": Case(lay_sparse("big"), blade("delete_file", {"path": "big"}), "Deleted big"),
    "sparse: open_file": Case(lay_sparse("big"), blade("open_file", {"path": "big"}), NOT_WHOLE),
    "sparse: LineCount": Case(
        lay_sparse("big"),
        promptly("LineCount", {"file": "big"}),
        "too large to be counted within 10 s .*: 0 lines|^0 big$",
    ),
    "sparse: ListFiles": Case(lay_sparse("big"), promptly("ListFiles", {}), "21474836480 .* big"),
    "sparse: skill": Case(
        lay_sparse(".claude/skills/a/SKILL.md"), maki("skill", {"name": "a"}), "this session has no skills"
    ),
    "sparse: .gitignore": Case(
        lay_sparse(".gitignore"), blade("grep_search", {"pattern": "needle"}), "No matches for 'needle'"
    ),
    **each("text", lay_text("big"), NOT_WHOLE, only(WHOLE, readers("big"))),
    **each("text", lay_text("big"), "line 1 of many, with a needle\n", but(WHOLE, readers("big"))),
    "text: a range": Case(
        lay_text("big"),
        blade("read_file_range", {"path": "big", "start_line": 9_990, "end_line": 9_995}),
        "9995: line 9994 of many",
    ),
    "text: a line beyond the end": Case(
        lay_text("big"),
        blade("read_file_range", {"path": "big", "start_line": 1_000_000, "end_line": 1_000_001}),
        "is too far into the file: .* use a command such as tail",
    ),
    **each("text", lay_text("big"), NOT_SEARCHED, searchers(".") | searchers("big")),
    **each("one line", lay_line("big"), NOT_WHOLE, only(WHOLE, readers("big"))),
    **each(
        "one line",
        lay_line("big"),
        "needle, a needle",
        but({*WHOLE, "ShowFileContents, lines"}, readers("big")),
    ),
    "one line: ShowFileContents, lines": Case(
        lay_line("big"),
        promptly("ShowFileContents", {"file": "big", "startLine": 1, "lineCount": 5}),
        "beyond the end|is too far into the file",
    ),
    **each("one line", lay_line("big"), NOT_SEARCHED, searchers(".")),
    "one line: edit": Case(
        lay_line("big"), maki("edit", {"path": "big", "old_string": "a", "new_string": "b"}), "big is too large"
    ),
    "one line: index": Case(lay_line("big.py"), maki("index", {"path": "big.py"}), "is larger than .* read a range"),
    "one line: copy_file": Case(
        lay_line("big"), blade("copy_file", {"source": "big", "destination": "copy"}), "Copied big to copy"
    ),
    "one line: LineCount": Case(lay_line("big"), promptly("LineCount", {"file": "big"}), "^0 big$"),
    **each("gzip", lay_gzip("big"), "big is a binary file", readers("big")),
    **each("gzip", lay_gzip("big"), "big was not searched: it is a binary file", searchers("big")),
    **each("entries", lay_entries, "needle|stopped at its limit of 10 s; give a narrower path", searchers("many")),
    "entries: list_directory": Case(
        lay_entries, blade("list_directory", {"path": "many"}), r"f0\d+\.py(?s:.*)\d+ more: list a directory in it"
    ),
    "entries: get_workspace_structure": Case(lay_entries, blade("get_workspace_structure", {"depth": 3}), r"\d+ more"),
    "entries: list_directory of proto": Case(
        lay_entries, proto("list_directory", {"path": "many"}), r"f0\d+\.py(?s:.*)entries 1-\d+ of \d+; ask for less"
    ),
    "entries: ListFiles": Case(
        lay_entries, promptly("ListFiles", {"path": "many"}), r"f0\d+\.py(?s:.*)entries 1-\d+ of \d+; ask for less"
    ),
    "entries: read": Case(lay_entries, maki("read", {"path": "many"}), r"f0\d+\.py(?s:.*)of \d+"),
    "entries: find_files": Case(lay_entries, blade("find_files", {"pattern": "f0000500"}), "^many/f0000500.py$"),
    "entries: FindFiles": Case(
        lay_entries, promptly("FindFiles", {"pattern": "f000050?.py", "path": "."}), "^many/f0000500.py\n"
    ),
    "entries: find_files_glob": Case(
        lay_entries, blade("find_files_glob", {"pattern": "**/*5.py"}), r"many/f\d+5.py\n(?s:.*)only the first 200"
    ),
    "entries: glob": Case(lay_entries, maki("glob", {"pattern": "**/f0000500.py"}), "^many/f0000500.py$"),
    "entries: glob of proto": Case(lay_entries, proto("glob", {"pattern": "**/f0000500.py"}), "many/f0000500.py"),
    "entries: IntelliJSearch": Case(
        lay_entries, proxyai("IntelliJSearch", {"pattern": "needle"}), "needle|search stopped .* give a narrower"
    ),
    "entries: codebase_search": Case(
        lay_entries, blade("codebase_search", {"query": "needle"}), "needle|search stopped .* give a narrower"
    ),
    "entries: copy_file": Case(
        lay_entries, blade("copy_file", {"source": "many", "destination": "copy"}), "many was left as it is"
    ),
    "entries: move_file": Case(
        lay_entries, blade("move_file", {"source": "many", "destination": "moved"}), "many was left as it is"
    ),
    "entries: delete_file": Case(
        lay_entries, blade("delete_file", {"path": "many", "recursive": True}), "many was left as it is"
    ),
    "entries: read_file of none": Case(
        lay_entries, blade("read_file", {"path": "many/f00005001.py"}), r"does not exist \(did you mean 'many/f"
    ),
    **each("endless, /dev/zero", lay_endless, OUTSIDE, readers("zero") | searchers("zero")),
    **each("endless, device", lay_endless, NO_FILE, readers("device")),
    **each("endless, FIFO", lay_endless, NO_FILE, readers("fifo")),
    **each("endless", lay_endless, "^No (matches|files)", searchers(".")),
    "endless: copy_file": Case(
        lay_endless, blade("copy_file", {"source": "fifo", "destination": "copy"}), "is not copied"
    ),
    "endless: index": Case(lay_endless, maki("index", {"path": "fifo"}), NO_FILE),
    "endless: list_directory": Case(lay_endless, blade("list_directory", {}), "(?s)fifo.*random.*zero"),
    "stream: gzip, many members": Case(lay_nothing, fetched("gzip", bomb), "larger than 5,000,000 bytes"),
    "stream: gzip, one member": Case(lay_nothing, fetched("gzip", single_bomb), "larger than 5,000,000 bytes"),
    "stream: twice gzip": Case(lay_nothing, fetched("gzip, gzip", bomb), "which was not requested"),
    "stream: brotli": Case(lay_nothing, fetched("br", endless), "which was not requested"),
    "stream: without end": Case(lay_nothing, fetched("identity", endless), "larger than 5,000,000 bytes"),
    "stream: drop by drop": Case(lay_nothing, fetched("identity", dripping), "did not respond completely within 20 s"),
    "output: yes": Case(lay_nothing, printing("timeout 5 yes"), "exit code 124:\ny\ny\n"),
    "output: /dev/zero": Case(lay_nothing, printing("head -c 3G /dev/zero"), r"\d{10} bytes left out"),
    "output: one line": Case(lay_nothing, printing("head -c 1G /dev/zero | tr '\\0' x"), "^x{999}"),
    "server: a body of 200 MB": Case(
        lay_nothing, posted(large_body(BODY), chunked=False), "^413 .*is larger than 33,554,432 bytes", is_server=True
    ),
    "server: 200 MB in chunks": Case(
        lay_nothing, posted(large_body(BODY), chunked=True), "^413 .*is larger than 33,554,432 bytes", is_server=True
    ),
    "server: a body of 30 MB": Case(
        lay_nothing, posted(large_body(30_000_000), chunked=False), "^502 .*no server answers at", is_server=True
    ),
    "server: 30 MB of empty lists": Case(
        lay_nothing, posted(nested_body(30_000_000), chunked=False), "^400 .*more than 2000000 values", is_server=True
    ),
    "server: 30 MB of open brackets": Case(
        lay_nothing,
        posted(lambda: iter([b"[" * 1_900_000]), chunked=False),
        "^400 .*is not JSON: maximum recursion depth",
        is_server=True,
    ),
    "model: 20 MB of text": Case(
        lay_nothing, parsed(lambda: "some words, " * 1_750_000), "^0 calls, 21000000 characters of content$"
    ),
    "model: an argument of 5 MB": Case(
        lay_nothing,
        parsed(lambda: '<tool_call>{"name": "read_file", "arguments": {"path": "' + "x" * 5_000_000),
        "^0 calls, 0 characters of content$",
    ),
}


# ---------------------------------------------------------------------- measuring


def measure_case(name: str, folder: Path) -> Cost:
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
    words = [sys.executable, "-m", "benchmarks.floods", "--run", name, "--folder", str(folder)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        return Cost(limit_s, float("nan"), False, f"not over after {limit_s:g} s")
    if done.returncode:
        return Cost(0.0, float("nan"), False, f"died: {done.stderr[-500:]}")
    return Cost(**json.loads(done.stdout))


def sweep(names: list[str], folder: Path, scale: float) -> Iterator[tuple[str, Cost]]:
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


def misses(case: Case, cost: Cost) -> bool:
    is_late = cost.seconds > TIME_BAR_S and not case.is_program
    return is_late or not cost.megabytes <= MEMORY_BAR_MB or re.search(case.gives, cost.text) is None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="*", help="names of cases, or their beginnings")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--folder", type=Path, help="where to work; needs 3 GB and 1,000,000 inodes")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        cost = measure_case(options.run, options.folder)
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
            if misses(CASES[name], cost):
                missed.append(f"{name}: {cost.megabytes:.0f} MB, {cost.seconds:.1f} s: {cost.text[:1000]}")
    for line in missed:
        print("MISSED", line)
    return 1 if missed else 0


if __name__ == "__main__":
    stopping.run(main)
