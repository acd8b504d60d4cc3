"""Naive versions of the tools, which the attacks are also run against to show that the checks can fail.

They do real damage. Therefore, every function refuses to work outside of a read-only sandbox,
which `confine` starts.
"""

from __future__ import annotations

import ast
import contextlib
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

FOLDER_PREFIX = "adapter-attacks-"
"""Prefix of the names of the folders that a run may write in."""


def is_confined() -> bool:
    folder = os.environ.get("TMPDIR", "")
    if not os.path.basename(folder).startswith(FOLDER_PREFIX) or _first_line("/proc/1/comm") != "bwrap":
        return False
    with open("/proc/self/mounts", encoding="utf-8") as file:
        mounts = [line.split(" ") for line in file]
    writable = {place for _, place, _, options, *_ in mounts if "ro" not in options.split(",")}
    read_only = ("/", os.path.dirname(folder), os.path.dirname(__file__))
    return all(place == folder or re.match("/(dev|proc)(/|$)", place) for place in writable) and all(
        os.statvfs(place).f_flag & os.ST_RDONLY for place in read_only
    )


def _first_line(path: str) -> str:
    with contextlib.suppress(OSError), open(path, encoding="utf-8") as file:
        return file.readline().rstrip("\n")
    return ""


def check_confined() -> None:
    """Raise SystemExit if a successful attack would do harm."""
    if not is_confined():
        raise SystemExit("the attacks run only in a read-only sandbox: python -m benchmarks.attacks (needs bubblewrap)")


def confine(module: str, then: Callable[[str], object] | None = None) -> None:
    if is_confined():
        return
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise SystemExit(f"{module} runs only in a sandbox: install bubblewrap")
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as folder:
        box = [
            *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", folder, folder),
            *("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--cap-drop", "ALL"),
            *("--die-with-parent", "--new-session", "--setenv", "TMPDIR", folder, "--chdir", home),
        ]
        command = [bwrap, *box, sys.executable, "-m", module, *sys.argv[1:]]
        done = subprocess.run(command, stdout=subprocess.PIPE if then else None, text=True, check=False)
    print(done.stdout or "", end="")
    if then and done.returncode == 0:
        then(done.stdout)
    raise SystemExit(done.returncode)


def path_of(path: str) -> str:
    check_confined()
    return os.path.join(os.getcwd(), path)


def read(path: str) -> str:
    with open(path_of(path), "rb") as file:
        data = file.read()
    if data.startswith(b"%PDF"):
        return pdf(data)
    return data.decode("utf-8", "replace")


def pdf(data: bytes) -> str:
    text = ""
    for packed in re.findall(rb"stream\n(.*?)\nendstream", data, re.DOTALL):
        with contextlib.suppress(zlib.error):
            while packed:
                packed = zlib.decompress(packed)
                text += "\n".join(re.findall(r"\((.*?)\)", packed.decode("latin-1")))
    return text


def write(path: str, content: str) -> str:
    os.makedirs(os.path.dirname(path_of(path)) or ".", exist_ok=True)
    with open(path_of(path), "w", encoding="utf-8") as file:
        file.write(content)
    return f"wrote {path}"


def edit(path: str, old: str, new: str) -> str:
    return write(path, re.sub(re.escape(old), new, read(path), count=1))


def delete(path: str) -> str:
    full = path_of(path)
    if os.path.isdir(full):
        shutil.rmtree(os.path.realpath(full))
    else:
        os.remove(full)
    return f"deleted {path}"


def move(source: str, destination: str) -> str:
    os.makedirs(os.path.dirname(path_of(destination)) or ".", exist_ok=True)
    return str(shutil.move(path_of(source), path_of(destination)))


def copy(source: str, destination: str) -> str:
    full = path_of(source)
    if os.path.isdir(full):
        return str(shutil.copytree(full, path_of(destination)))
    os.makedirs(os.path.dirname(path_of(destination)) or ".", exist_ok=True)
    return str(shutil.copy(full, path_of(destination)))


def mkdir(path: str) -> str:
    os.makedirs(path_of(path), exist_ok=True)
    return f"made {path}"


def list_(path: str) -> str:
    return "\n".join(os.listdir(path_of(path)))


def tree(path: str) -> str:
    found = os.walk(path_of(path), followlinks=True)
    return "\n".join(os.path.join(top, name) for top, _, names in found for name in names)


def find(pattern: str, path: str = ".") -> str:
    return "\n".join(glob.glob(os.path.join(path_of(path), pattern), recursive=True))


def grep(pattern: str, path: str = ".") -> str:
    hits = []
    for top, _, names in os.walk(path_of(path), followlinks=True):
        for name in names:
            text = read(os.path.join(top, name))
            hits += [f"{name}:{line}" for line in text.splitlines() if re.search(pattern, line)]
    return "\n".join(hits)


def run(command: str) -> str:
    check_confined()
    done = subprocess.run(command, shell=True, capture_output=True, text=True, errors="replace", check=False)
    return done.stdout + done.stderr


def allowed(command: str, rules: Sequence[str]) -> bool:
    return any(command.strip().startswith(rule) for rule in rules)


def fetch(url: str) -> str:
    with urllib.request.urlopen(url if "://" in url else f"http://{url}", timeout=5) as response:
        return str(response.read().decode("utf-8", "replace"))


def memory(command: str, path: str = "notes", content: str = "") -> str:
    place = os.path.join(os.environ["HOME"], ".memory", path)
    if command == "view":
        return read(place)
    return write(place, content) if command == "write" else delete(place)


def skill(name: str) -> str:
    return read(os.path.join(".skills", name, "SKILL.md"))


def code(text: str) -> str:
    check_confined()
    out: list[str] = []
    exec(text, {"print": lambda *words: out.append(" ".join(map(str, words)))})
    return "\n".join(out)


VERBS: dict[str, Callable[..., str]] = {
    "read": read, "write": write, "edit": edit, "delete": delete, "move": move, "copy": copy, "mkdir": mkdir,
    "list": list_, "tree": tree, "find": find, "grep": grep, "run": run, "fetch": fetch, "memory": memory,
    "skill": skill, "code": code,
}  # fmt: skip

TOOLS: dict[str, Callable[..., str]] = {
    "read_file": read,
    "write_file": write,
    "delete_file": delete,
    "run_command": lambda command, **_: run(command),
    "write": write,
    "read": read,
    "bash": lambda command, **_: run(command),
    "batch": lambda tool_calls: "".join(TOOLS[each["tool"]](**each["parameters"]) for each in tool_calls),
    "code_execution": lambda code, **_: run(f"python3 -c {shlex.quote(code)}"),
    "todowrite": lambda todos: "\n".join(f"- {each['content']}" for each in todos),
}


PUBLISHED = (
    r"<tool_call>(.*?)</tool_call>",
    r"<invoke .*?>(.*?)</invoke>",
    r"<parameter=.*?>(.*?)</parameter>",
    r"<think>(.*?)</think>",
    r"```json\s*(.*?)\s*```",
    r"Action:\s*(.*?)\s*Action Input:",
    r"<\|channel\|>(.*?)<\|message\|>",
    r"\s*(\{.*\})\s*$",
)
"""Patterns as in published parsers of calls."""


def calls_in(text: str) -> list[tuple[str, dict[str, Any]]]:
    check_confined()
    found = []
    with contextlib.suppress(ValueError):
        json.loads(text)  # perhaps the whole text is JSON
    for pattern in PUBLISHED:
        re.findall(pattern, text, re.DOTALL)
    for body in re.findall(r"\{\s*\"name\".*?\}\s*\}|\{\s*\"name\".*", text, re.DOTALL):
        for ending in ("", "}", "}}", '"}}'):
            with contextlib.suppress(ValueError):
                call = json.loads(body + ending)
                found.append((call["name"], call.get("arguments") or call.get("parameters") or {}))
                break
    for name, arguments in re.findall(r"(\w+)\(([^()]*)\)", text):
        if name in TOOLS:
            with contextlib.suppress(SyntaxError, ValueError):
                keywords = ast.parse(f"f({arguments})", mode="eval").body.keywords  # type: ignore[attr-defined]
                found.append((name, {each.arg: eval(ast.unparse(each.value)) for each in keywords}))
    for name, body in re.findall(r"<function=(\w+)>(.*?)(?:</function>|\Z)", text, re.DOTALL):
        found.append((name, dict(re.findall(r"<parameter=(\w+)>\n?(.*?)\n?(?:</parameter>|\Z)", body, re.DOTALL))))
    for name, body in re.findall(r"<invoke name=\"(\w+)\">(.*?)(?:</invoke>|\Z)", text, re.DOTALL):
        found.append((name, dict(re.findall(r"<parameter name=\"(\w+)\">(.*?)(?:</parameter>|\Z)", body, re.DOTALL))))
    return found


def agent(
    answers: Sequence[str], task: str, below: Sequence[str] = (), server: Mapping[str, str] | None = None
) -> list[str]:
    server = server or {}
    tools: dict[str, Callable[..., str]] = {
        **TOOLS,
        "task": lambda prompt, **_: "\n".join(agent(below, prompt, below[1:])),
        "remote": lambda **_: server.get("gives", ""),
    }
    prompts = [f"{server.get('description', '')}\n{task}"]
    for answer in answers:
        results = []
        for name, arguments in calls_in(answer.replace("{ECHO}", prompts[-1])):
            try:
                results.append(tools[name](**arguments))
            except Exception as error:  # noqa: BLE001  # as naive as the rest
                results.append(repr(error))
        prompts.append("\n".join(f"<tool_response>\n{result}\n</tool_response>" for result in results))
    return prompts


def chat(url: str, task: str, record: str) -> str:
    check_confined()
    messages = [{"role": "user", "content": task}]
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}", "Content-Type": "application/json"}
    try:
        for _ in range(3):
            body = json.dumps({"model": "m", "messages": messages}).encode()
            request = urllib.request.Request(f"{url}/chat/completions", body, headers)
            with urllib.request.urlopen(request, timeout=5) as response:
                answer = json.load(response)["choices"][0]["message"]["content"]
            results = [TOOLS[name](**arguments) for name, arguments in calls_in(answer)]
            messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": "\n".join(results)}]
    except urllib.error.HTTPError as error:
        return f"{url}: {error.read().decode()}"
    except Exception as error:  # noqa: BLE001  # as naive as the rest
        return f"{url}: {error}"
    finally:
        with open(record, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(message, ensure_ascii=False) + "\n" for message in messages)
    return ""


def mcp(url: str, calls: Sequence[Any]) -> list[str]:
    check_confined()

    def ask(method: str, **params: Any) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}", "Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=30) as response:
            return json.load(response)["result"]

    try:
        ask("initialize")
        page, tools = ask("tools/list"), []
        while True:
            tools += page["tools"]
            if "nextCursor" not in page:
                break
            page = ask("tools/list", cursor=page["nextCursor"])
        names = {re.sub(r"\W", "_", tool["name"]) for tool in tools}
        results = [ask("tools/call", name=name) if name in names else TOOLS[name](**given) for name, given in calls]
    except Exception as error:  # noqa: BLE001  # as naive as the rest
        return [f"{url}: {error}"]
    return [*(f"{tool['name']}: {tool['description']}" for tool in tools), *map(str, results)]


def undo(folder: Path) -> str:
    check_confined()
    for file in sorted(folder.glob("*/record.json"))[-1:]:
        for number, step in enumerate(json.loads(file.read_bytes())["steps"]):
            if step["kind"] == "directory":
                shutil.rmtree(path_of(step["path"]))
            elif step["kind"] == "move":
                move(step["destination"], step["path"])
            elif (file.parent / str(number)).exists():
                write(step["path"], (file.parent / str(number)).read_text())
            else:
                delete(step["path"])
    return ""


def native(url: str) -> list[str]:
    check_confined()
    calls: dict[int, dict[str, str]] = {}
    body = json.dumps({"messages": [], "stream": True}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{url}/chat/completions", body), timeout=30) as response:
        for line in response:
            for choice in json.loads(line[6:])["choices"] if line.startswith(b"data: {") else ():
                for call in choice["delta"].get("tool_calls", ()):
                    known = calls.setdefault(call["index"], {"name": "", "arguments": ""})
                    for key in known:
                        known[key] += call["function"].get(key, "")
    results = []
    for call in calls.values():
        for ending in ("", '"}'):
            with contextlib.suppress(ValueError, KeyError, TypeError):
                results.append(TOOLS[call["name"]](**json.loads(call["arguments"] + ending)))
    return results


def show(text: str) -> None:
    print(text)


def proxy(upstream: str, key: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {**dict(self.headers), "Authorization": f"Bearer {key}"}
            try:
                response = urllib.request.urlopen(urllib.request.Request(f"{upstream}/chat/completions", body, headers))
            except urllib.error.HTTPError as error:
                response = error
            with response:
                answer = response.read()
            self.send_response(response.status)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_PUT = do_OPTIONS = do_POST

        def log_message(self, *_: object) -> None:
            pass

    return Handler
