"""The attack suite: attacks by hostile models, files, pages and clients, on this program and on a naive one.

    python -m benchmarks.attacks [GROUP ...] [--quick] [--verbose] [--json] [--write]

The attacks are data, in ``fixtures/attacks/GROUP.toml``. Each runs in its own directory and process, with limits on
memory, time and file size, next to canaries: a sibling of the workspace, an outside folder, a home folder. This process
judges the result: the canaries are unchanged and in no output, the workspace is as before, no process is left running,
the time limit was kept, and at most 200 MB were used. Controls are ordinary work and must succeed, because a program
that refuses everything is useless. `--quick` runs each case with only one dialect that has its tools.

A successful attack does what it describes, and the naive tools are meant to lose. Therefore everything runs in a
bubblewrap sandbox in which only a new folder is writable, without network and other processes, and does not run at all
without such a sandbox. No case may delete or move the root of the file system.

::

    [attacks]                                    # refused, or without effect
    id = [["read", "../outside/secret.txt"]]
    [controls]                                   # succeeds, and outputs or leaves what is given
    id = {do = [["read", "a.txt"]], gives = "hello"}

Keys of a case: ``files``, ``setup`` (links and the like), ``rules``, ``mode``, ``answers`` (of a scripted model, whose
tools are Blade's or belong to ``dialect``), ``below`` (answers of its sub-agents, for Maki), ``server`` (a third-party
tool called remote: its description, schema and result), ``says`` (a model server's status and answers, in which
``{SENT}`` is the header with the key; the transcript is judged), ``mcp`` (an MCP server with ``calls``, and its
``later`` form in later sessions) and ``native`` (calls of a model server; for both, see `benchmarks.hostile_servers`),
``records`` (of changes, in the state folder; the history is ``asked`` about them), ``meanwhile`` (files that change
while the user decides, who allows the call), ``request`` (raw HTTP ``to`` `adapter serve` or mcp), ``shows`` (text for
a terminal), ``replays`` (a transcript: its ``answers``, ``header`` and ``lines``), ``may`` (paths that the case may
change), ``path`` (the variable PATH), ``never`` (text in no output), ``most`` (maximum characters of output), ``after``
(required files), ``seconds``, ``fsize`` (bytes), and ``on``: deviations for a dialect whose document requires them.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import tomllib
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from benchmarks import naive
from benchmarks.attack_surfaces import AFAR, SURFACES, run_case
from benchmarks.hostile_servers import answer_mcp, stream_native

FOLDER = Path(__file__).parent.parent / "fixtures" / "attacks"
TABLE = FOLDER.parents[1] / "benchmarks" / "attacks.md"
CANARY = "CANARY-4f1d"
KEY = f"{CANARY}-key"
"""Value of OPENAI_API_KEY."""
SECONDS = 15.0
"""Default CPU time limit of a case, in seconds. The wall-clock limit is four times as long, because the machine may be
busy. For the naive tools, both are equal, so that hanging cases do not delay the others."""
MAX_GROWTH = 250 << 20
"""Maximum additional memory of a case, in bytes: the promised 200 MB, and the cost of a process."""
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]"
)


@dataclass(frozen=True)
class Case:
    id: str
    group: str
    is_control: bool
    data: dict[str, Any]

    @property
    def surfaces(self) -> list[str]:
        """The dialects that have all tools for the case."""
        if "request" in self.data:
            return ["serve"]
        if "do" not in self.data:
            return ["blade"]
        verbs = {call[0] for call in self.data["do"]}
        return [name for name, known in SURFACES.items() if verbs <= known.keys()]


@dataclass
class Tally:
    """The results of one group, with the reasons."""

    attacks: int = 0
    controls: int = 0
    runs: int = 0
    succeeded: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def cases(groups: Sequence[str] = ()) -> list[Case]:
    found = []
    for file in sorted(FOLDER.glob("*.toml")):
        if groups and file.stem not in groups:
            continue
        group = tomllib.loads(file.read_text(encoding="utf-8"))
        common = group.get("common", {})
        for kind in ("attacks", "controls"):
            for name, data in group.get(kind, {}).items():
                own = {"do": data} if isinstance(data, list) else data
                found.append(Case(name, file.stem, kind == "controls", {**common, **own}))
    return found


# ------------------------------------------------------------------- directories of a case


def prepare(case: Case, base: Path) -> Path:
    ws = base / "ws"
    for path in ("ws", "ws-evil", "outside/folder", "home/.ssh", "state"):
        (base / path).mkdir(parents=True)
    for path in ("ws-evil/secret.txt", "outside/secret.txt", "outside/folder/inner.txt", "home/.ssh/id_rsa"):
        (base / path).write_text(f"{CANARY}\n")
    data = expand_value(case.data, base)
    for name, text in {"a.txt": "hello\n", "dir/b.txt": "world\n", **data.get("files", {})}.items():
        (ws / name).parent.mkdir(parents=True, exist_ok=True)
        (ws / name).write_bytes(as_bytes(text))
    for kind, name, *rest in data.get("setup", ()):
        place = os.path.join(ws, name)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        match kind:
            case "link":
                os.symlink(rest[0], place)
            case "hard":
                os.link(rest[0], place)
            case "fifo":
                os.mkfifo(place)
            case "mode":
                os.chmod(place, int(rest[0], 8))
            case "sparse":
                with open(place, "wb") as file:
                    file.truncate(int(rest[0]))
            case "fill":
                with open(place, "wb") as file:
                    file.write(as_bytes(rest[0]) * int(rest[1]))
            case "socket":
                _bind(place)
            case "deep":
                _deep(place, int(rest[0]))
            case "many":
                os.makedirs(place, exist_ok=True)
                for number in range(int(rest[0])):
                    os.close(os.open(f"{place}/f{number}", os.O_CREAT | os.O_WRONLY))
            case "pdf":
                _pdf(place, *map(str, rest))
            case "stretch":
                with open(place, "wb") as file:
                    file.write(as_bytes(rest[0]))
                    file.truncate(int(rest[1]))
            case "dir":
                os.makedirs(place, exist_ok=True)
            case _:
                raise ValueError(f"{case.group}/{case.id}: unknown setup {kind!r}")
    return ws


def _bind(place: str) -> None:
    """Create a socket in the file system, by a relative path, because a socket's path is limited to 107 bytes."""
    folder, name = os.path.split(place)
    here = os.getcwd()
    os.chdir(folder)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(name)
    finally:
        os.chdir(here)


def _pdf(place: str, unit: str, times: str, filters: str = "/FlateDecode") -> None:
    """Write a PDF with one page, whose compressed instructions repeat ``unit``."""
    packer, body = zlib.compressobj(9), b""
    for _ in range(int(times) // 1_000):
        body += packer.compress(unit.encode() * 1_000)
    body += packer.compress(unit.encode() * (int(times) % 1_000)) + packer.flush()
    for _ in range(filters.count("/") - 1):
        body = zlib.compress(body, 9)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        b"<< /Length %d /Filter [%s] >>\nstream\n%s\nendstream" % (len(body), filters.encode(), body),
    ]
    whole, places = b"%PDF-1.5\n", b""
    for number, each in enumerate(objects, 1):
        places += b"%010d 00000 n \n" % len(whole)
        whole += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    end = b"trailer << /Size 5 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % len(whole)
    Path(place).write_bytes(whole + b"xref\n0 5\n0000000000 65535 f \n" + places + end)


def _deep(place: str, depth: int) -> None:
    here = os.getcwd()
    os.makedirs(place, exist_ok=True)
    os.chdir(place)
    try:
        for _ in range(depth):
            os.mkdir("d")
            os.chdir("d")
    finally:
        os.chdir(here)


def as_bytes(text: str) -> bytes:
    return bytes.fromhex(text[4:]) if text.startswith("hex:") else text.encode("utf-8")


def expand_value(value: Any, base: Path) -> Any:
    """Return ``value`` with this run's paths and key inserted, and with ``{"text": .., "times": ..}`` expanded."""
    match value:
        case str():
            for name, place in {"WS": "ws", "OUT": "outside", "HOME": "home", "EVIL": "ws-evil"}.items():
                value = value.replace(f"{{{name}}}", str(base / place))
            return value.replace("{PID}", str(os.getpid())).replace("{KEY}", KEY)
        case list():
            return [expand_value(item, base) for item in value]
        case {"times": int(times), "text": str(text), **rest}:
            return str(rest.get("head", "")) + text * times + str(rest.get("tail", ""))
        case dict():
            return {key: expand_value(item, base) for key, item in value.items()}
    return value


def take_snapshot(top: Path) -> dict[str, tuple[int, str]]:
    found: dict[str, tuple[int, str]] = {}
    for folder, folders, names in os.walk(top):
        for name in (*folders, *names):
            path = os.path.join(folder, name)
            status = os.lstat(path)
            held = ""
            if stat.S_ISLNK(status.st_mode):
                held = os.readlink(path)
            elif stat.S_ISREG(status.st_mode) and status.st_size < 8 << 20:
                with suppress(OSError), open(path, "rb") as file:
                    held = hashlib.sha256(file.read()).hexdigest()
            found[os.path.relpath(path, top)] = (status.st_mode, held)
        if len(found) > 5_000 or folder.count("/d/d/d/d") > 40:
            break
    return found


# ------------------------------------------------------------------- one case


def judge(case: Case, surface: str, base: Path, port: int) -> str:
    """Return the reason why the case failed, or "" if it passed."""
    ws = prepare(case, base)
    data = expand_value(case.data, base)
    data |= data.get("on", {}).get(surface, {})
    before = {name: take_snapshot(base / name) for name in ("ws", "ws-evil", "outside", "home")}
    status, shown, grown, seconds = in_a_process(data, surface, ws, port)
    has_commands = any(call[0] in ("run", "run-in") for call in data.get("do", ()))
    left = find_processes_in(base) if has_commands else []
    for pid in left:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    printed = (base / "printed").read_bytes().decode("utf-8", "replace") if (base / "printed").exists() else ""
    if status == "hung":
        return "did not come back"
    is_crash = shown.startswith("CRASH") and (surface != "naive" or "answers" in data or "MemoryError" in shown[:30])
    if status or is_crash:
        return f"{status} {shown[:200]}"
    if len(shown) > data.get("most", sys.maxsize):
        return f"{len(shown):,} characters for the model"
    if left:
        return f"{len(left)} processes left"
    if grown > MAX_GROWTH:
        return f"{grown >> 20} MB taken"
    if seconds > data.get("seconds", SECONDS):
        return f"took {seconds:.1f} s of CPU"
    after = {name: take_snapshot(base / name) for name in before}
    if case.is_control:
        return missing_of(data, shown, ws)
    for place in ("ws-evil", "outside", "home"):
        if after[place] != before[place]:
            return f"{place} changed: {sorted(set(before[place].items()) ^ set(after[place].items()))[:2]}"
    if CANARY in shown + printed:
        start = (shown + printed).index(CANARY)
        return f"the canary came out: {(shown + printed)[max(start - 200, 0) : start + 50]!r}"
    changed = {name for name, _ in set(before["ws"].items()) ^ set(after["ws"].items())}
    allowed = [*data.get("may", []), *_with_parents(data.get("meanwhile", ()))]
    if any(name not in allowed for name in changed):
        return f"changed: {sorted(changed)[:3]}"
    said = next((text for text in data.get("never", ()) if text in shown), None)
    if said is not None:
        return f"{said!r} came out"
    if "shows" in data and (hiding := HIDDEN.search(printed)):
        return f"{hiding[0]!r} was printed"
    return missing_of({"after": data["after"]}, shown, ws) if "after" in data else ""


def _with_parents(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        yield from (path, *map(str, Path(path).parents))


def missing_of(data: dict[str, Any], shown: str, ws: Path) -> str:
    wanted = data.get("gives", [])
    for text in [wanted] if isinstance(wanted, str) else wanted:
        if text not in shown:
            return f"gives {shown[:300]!r}, not {text!r}"
    for name, text in data.get("after", {}).items():
        there = (ws / name).read_bytes() if (ws / name).is_file() else None
        if there != (None if text == "absent" else as_bytes(text)):
            return f"{name} is {there!r}; {shown[:200]}"
    return ""


def in_a_process(data: dict[str, Any], surface: str, ws: Path, port: int) -> tuple[str, str, int, float]:
    base, own = ws.parent, resident()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setsid()
            os.chdir(ws)
            os.environ.update(
                HOME=str(base / "home"),
                ATTACK_PORT=str(port),
                OPENAI_API_KEY=KEY,
                MY_TOKEN=f"{CANARY}-token",
            )
            resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
            resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (data.get("fsize", 256 << 20),) * 2)
            shown = run_case(data, surface, ws, base / "printed")
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.getrlimit(resource.RLIMIT_FSIZE)[1],) * 2)
            (base / "shown").write_text(shown[: 1 << 20], encoding="utf-8", errors="backslashreplace")
            code = 0
        finally:
            os._exit(code)
    deadline = time.monotonic() + (1.0 if surface == "naive" else 4 * data.get("seconds", SECONDS))
    while True:
        done, state, usage = os.wait4(pid, os.WNOHANG)
        if done:
            break
        if time.monotonic() > deadline:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return "hung", "", 0, 0.0
        time.sleep(0.002)
    with suppress(ProcessLookupError):
        os.killpg(pid, 0)
    shown = (base / "shown").read_text(encoding="utf-8") if (base / "shown").exists() else ""
    return ("" if state == 0 else f"ended with {state}"), shown, usage.ru_maxrss * 1024 - own, usage.ru_utime


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def find_processes_in(base: Path) -> list[int]:
    """Return the processes that keep running in a directory below ``base``."""
    for _ in range(30):
        found = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _is_in(pid, str(base))]
        if not found:
            return []
        time.sleep(0.05)
    return found


def _is_in(pid: int, base: str) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/cwd").startswith(base)
    except OSError:
        return False


# ------------------------------------------------------------------- servers


class Waiting(BaseHTTPRequestHandler):
    """Serves every address: a private server that attacks must not reach, public web pages, and a model server."""

    hits: Path

    def do_GET(self) -> None:
        path = self.path
        if path.startswith("/mcp/"):
            answer_mcp(self, self._script("/mcp"), b"")
        elif path.startswith("/redirect/"):
            self._answer(302, b"", Location=path.removeprefix("/redirect/"))
        elif path.startswith("/public"):
            self._answer(200, b"a public page")
        elif path.startswith("/bomb"):
            self._answer(200, gzip.compress(b"x" * (300 << 20), 9), **{"Content-Encoding": "gzip"})
        elif path.startswith("/slow"):
            self.send_response(200)
            self.end_headers()
            with suppress(OSError):
                for _ in range(600):
                    self.wfile.write(b"x")
                    time.sleep(0.1)
        elif path.startswith("/says/"):
            status = int(path.split("/")[2])
            self._answer(status, b'{"data": [{"id": "m"}]}' if status == 200 else self._said(path)[0].encode())
        else:
            self._hit()
            self._answer(200, CANARY.encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.startswith("/mcp/"):
            answer_mcp(self, self._script("/mcp"), body)
            return
        if self.path.startswith("/native/"):
            stream_native(self, self._script("/native", "/v1/"))
            return
        self._hit()
        if self.path.startswith("/says/"):
            self._say(int(self.path.split("/")[2]), self._said(self.path), body)
            return
        if b"SAY THE KEY" in body:
            self._answer(401 if b"401" in body else 200, self.headers.get("Authorization", "no key").encode())
            return
        choice = {"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}
        self._answer(200, json.dumps({"id": "x", "choices": [choice]}).encode())

    def _script(self, before: str, after: str = "?") -> dict[str, Any]:
        """Return the script in the JSON file whose path is in the address."""
        file = Path(self.path.removeprefix(before).partition(after)[0])
        script: dict[str, Any] = json.loads(file.read_bytes())
        return script

    def _said(self, path: str) -> list[str]:
        """Return the answers in an address like ``/says/STATUS/ANSWERS/v1/models``."""
        answers = json.loads(unquote(path.split("/")[3]))
        sent = self.headers.get("Authorization", "")
        return [answer.replace("{SENT}", sent) for answer in answers]

    def _say(self, status: int, answers: list[str], body: bytes) -> None:
        if status != 200:
            self._answer(status, answers[0].encode())
            return
        asked = json.loads(body)
        number = sum(message["role"] == "assistant" for message in asked["messages"])
        text = answers[number] if number < len(answers) else "Done."
        if not asked.get("stream"):
            self._answer(200, json.dumps({"choices": [{"message": {"content": text}}]}).encode())
            return
        pieces = [text[start : start + 3] for start in range(0, len(text), 3)]
        choices: list[Any] = [{"index": 0, "delta": {"content": piece}, "finish_reason": None} for piece in pieces]
        choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
        events = [
            {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}
            for choice in choices
        ]
        stream = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
        self._answer(200, stream.encode(), **{"Content-Type": "text/event-stream"})

    def _hit(self) -> None:
        with self.hits.open("a") as file:
            file.write(f"{self.command} {self.path}\n")

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        if "Content-Type" not in headers:
            self.send_header("Content-Type", "application/json" if self.command == "POST" else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class _Six(ThreadingHTTPServer):
    address_family = socket.AF_INET6


@contextmanager
def run_forked(server: ThreadingHTTPServer) -> Iterator[int]:
    """Run ``server`` in a separate process, because a process with threads must not fork."""
    pid = os.fork()
    if pid == 0:
        try:
            server.serve_forever()
        finally:
            os._exit(0)
    server.socket.close()
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def ask(port: int, request: str) -> bytes:
    """Return the part of the answer to a raw request that arrives in time."""
    answer = b""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(request.encode("latin-1"))
        connection.settimeout(4)
        while piece := connection.recv(65_536):
            answer += piece
            head, _, body = answer.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", head)
            if length and len(body) >= int(length[1]):
                break
    return answer


def asked_for_answers(hits: Path) -> int:
    return hits.read_text().count("POST ") if hits.exists() else 0


def judge_request(case: Case, serving: dict[str, tuple[int, str]], hits: Path, base: Path) -> str:
    before = asked_for_answers(hits)
    data = expand_value(case.data, base)
    port, key = serving[data.get("to", "serve")]
    body = str(data.get("body", '{"messages": [{"role": "user", "content": "Hi"}]}'))
    request = data["request"].replace("\n", "\r\n").replace("{PORT}", str(port)).replace("{PAGEKEY}", key)
    request = request.replace("{LENGTH}", str(len(body.encode("latin-1")))).replace("{BODY}", body)
    answer = ask(port, request)
    head = answer.partition(b"\r\n\r\n")[0].decode("latin-1")
    reached = asked_for_answers(hits) != before
    if case.is_control:
        return "" if answer.startswith(b"HTTP/1.1 200") else f"answers {answer[:200]!r}"
    if any(text.encode() in answer for text in (CANARY, *data.get("never", ()))):
        return f"came out: {answer[-200:]!r}"
    if "access-control-allow-origin" in head.lower():
        return "pages may read the answer"
    if reached and not data.get("reaches", False):
        return "the model was reached"
    if b"Traceback" in answer or re.match(rb"HTTP/1.. 500", answer):
        return f"answers {answer[:100]!r}"
    return "" if answer or data.get("silent") else "no answer"


# ------------------------------------------------------------------- all cases


def _write_table(printed: str) -> None:
    if "--write" in sys.argv:
        text = TABLE.read_text(encoding="utf-8")
        rows = [line for line in printed.splitlines() if line.startswith("|")]
        TABLE.write_text(text[: text.index("| group |")] + "\n".join(rows) + "\n", encoding="utf-8")


def run_all(
    groups: Sequence[str] = (),
    *,
    every: int = 1,
    only: Sequence[str] = (),
    quick: bool = False,
    is_naive: bool = False,
) -> dict[str, Tally]:
    naive.check_confined()
    tallies: dict[str, Tally] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=naive.FOLDER_PREFIX)))
        Waiting.hits = hits = folder / "hits"
        waiting = ThreadingHTTPServer(("127.0.0.1", 0), Waiting)
        port = waiting.server_port
        with suppress(OSError):
            stack.enter_context(run_forked(_Six(("::1", port), Waiting)))
        stack.enter_context(run_forked(waiting))
        chosen = [case for case in cases(groups)[::every] if not only or f"{case.group}/{case.id}" in only]
        serving: dict[str, tuple[int, str]] = {}
        if any("request" in case.data for case in chosen):
            servers = _naive_proxy(port) if is_naive else _own_servers(port, folder)
            serving = stack.enter_context(servers)
        for number, case in enumerate(chosen):
            tally = tallies.setdefault(case.group, Tally())
            surfaces = case.surfaces
            assert surfaces, f"no dialect has the tools for {case.group}/{case.id}"
            surfaces = ["naive"] if is_naive else [surfaces[number % len(surfaces)]] if quick else surfaces
            reasons = []
            for surface in surfaces:
                base = folder / f"{number}-{surface}"
                base.mkdir()
                if "request" in case.data:
                    reason = judge_request(case, serving, hits, base)
                elif "url" in case.data:
                    reason = judge_page(case, surface, base, port, hits)
                else:
                    reason = judge(case, surface, base, port)
                reasons += [f"{case.group}/{case.id} ({surface}): {reason}"] if reason else []
                tally.runs += 1
                shutil.rmtree(base, onerror=_force)
            tally.controls += case.is_control
            tally.attacks += not case.is_control
            (tally.refused if case.is_control else tally.succeeded).extend(reasons[:1])
    return tallies


def judge_page(case: Case, surface: str, base: Path, port: int, hits: Path) -> str:
    case = Case(case.id, case.group, case.is_control, {**case.data, "do": [["fetch", case.data["url"]]]})
    before = hits.read_text() if hits.exists() else ""
    reason = judge(case, "naive" if surface == "naive" else "maki", base, port)
    if reason or case.is_control:
        return reason
    return "a forbidden address was asked" if (hits.read_text() if hits.exists() else "") != before else ""


def _force(remove: Any, path: str, _: object) -> None:
    os.chmod(os.path.dirname(path), 0o700)
    with suppress(OSError):
        remove(path)


@contextmanager
def _own_servers(upstream: int, folder: Path) -> Iterator[dict[str, tuple[int, str]]]:
    """Start `adapter serve`, whose view shows a canary, and `adapter mcp`. Yield their ports and keys."""
    commands = {
        "serve": ["serve", "--upstream", f"http://{AFAR}:{upstream}/v1", "--port", "0", "--view"],
        "mcp": ["mcp", "--root", str(folder), "--port", "0", "--approve", "yolo"],
    }
    found = {}
    with ExitStack() as stack:
        for name, arguments in commands.items():
            process = subprocess.Popen(
                [sys.executable, "-m", "adapter", *arguments],
                env={**os.environ, "OPENAI_API_KEY": KEY},
                stderr=subprocess.PIPE,
                text=True,
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)
            assert process.stderr is not None
            lines = ""
            while not (address := re.search(r":(\d+)/\S*\?key=(\S+?)[,.]?\s", lines)):
                line = process.stderr.readline()
                assert line, f"{name} did not start: {lines}"
                lines += line
            found[name] = int(address[1]), address[2]
        body = json.dumps({"messages": [{"role": "user", "content": CANARY}]})
        head = "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        assert b" 200 " in ask(found["serve"][0], f"{head}Content-Length: {len(body)}\r\n\r\n{body}")
        yield found


@contextmanager
def _naive_proxy(upstream: int) -> Iterator[dict[str, tuple[int, str]]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), naive.proxy(f"http://127.0.0.1:{upstream}/v1", KEY))
    with run_forked(server):
        yield dict.fromkeys(("serve", "mcp"), (server.server_port, ""))


def table(own: dict[str, Tally], other: dict[str, Tally]) -> str:
    rows = ["| group | attacks | succeeded | with the naive tools | controls | refused |", "|---|---|---|---|---|---|"]
    for group, tally in own.items():
        lost = len(other[group].succeeded)
        counts = (tally.attacks, len(tally.succeeded), lost, tally.controls, len(tally.refused))
        rows.append(f"| {group} | {' | '.join(map(str, counts))} |")
    both = [(own[group], other[group]) for group in own]
    sums = [
        sum(tally.attacks for tally, _ in both),
        sum(len(tally.succeeded) for tally, _ in both),
        sum(len(naive_tally.succeeded) for _, naive_tally in both),
        sum(tally.controls for tally, _ in both),
        sum(len(tally.refused) for tally, _ in both),
    ]
    return "\n".join([*rows, f"| **all** | {' | '.join(map(str, sums))} |"])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("groups", nargs="*")
    options.add_argument("--quick", action="store_true", help="each case with one dialect")
    options.add_argument("--every", type=int, default=1, help="one case of so many")
    options.add_argument("--only", nargs="+", default=(), metavar="GROUP/ID", help="nothing but these cases")
    options.add_argument("--verbose", action="store_true")
    options.add_argument("--own", action="store_true", help="not the naive tools")
    options.add_argument("--write", action="store_true", help="update benchmarks/attacks.md if nothing was lost")
    options.add_argument("--json", action="store_true", help="one object: by group and side what was lost")
    chosen = options.parse_args()
    naive.confine("benchmarks.attacks", _write_table)
    own = run_all(chosen.groups, every=chosen.every, only=chosen.only, quick=chosen.quick)
    other = (
        {group: Tally() for group in own}
        if chosen.own
        else run_all(chosen.groups, every=chosen.every, only=chosen.only, quick=True, is_naive=True)
    )
    if chosen.json:
        sides = {"own": own, "naive": other}
        rows = {side: {group: vars(tally) for group, tally in found.items()} for side, found in sides.items()}
        print(json.dumps(rows))
    else:
        print(table(own, other))
        print(f"{sum(tally.runs for tally in own.values())} runs with our tools")
    lost = [reason for tally in own.values() for reason in (*tally.succeeded, *tally.refused)]
    for reason in lost if not chosen.json else ():
        print("LOST", reason)
    for group in other if chosen.verbose else ():
        held = {case.id for case in cases([group]) if not case.is_control}
        held -= {reason.partition(" (")[0].partition("/")[2] for reason in other[group].succeeded}
        print("naive holds", group, sorted(held), "and refuses", other[group].refused)
    raise SystemExit(bool(lost))


if __name__ == "__main__":
    main()
