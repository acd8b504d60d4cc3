"""Clients in separate environments: from PyPI in a virtual environment, from npm in a folder.

They are installed once, below ``ADAPTER_CLIENTS`` (default ``~/.cache/toolcall-adapter/clients``). So is the Node for
the npm clients, because half of them need a newer one than many machines have.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from adapter.core.file_lock import try_lock

SCRIPTS = Path(__file__).parent / "scripts"
PAGE = Path(__file__).parents[2] / "docs" / "clients.md"
WRITTEN = "http://127.0.0.1:8090"
"""The server's address in recipes and in a command's configuration."""


def settings(name: str) -> str:
    """Return the configuration file that the page shows for a client: the block after ``<!-- config: NAME -->``."""
    found = re.search(rf"<!-- config: {name} -->\n```\w+\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found, f"{PAGE.name} has no block after <!-- config: {name} -->"
    return found[1]


@dataclass(frozen=True, kw_only=True)
class Client:
    """A client that the tests install in an environment of its own."""

    name: str
    packages: tuple[str, ...]
    """The packages to install. The first determines the version."""

    ways: tuple[str, ...]
    """The arguments of its script in ``scripts/``, one per API."""

    is_node: bool = False
    python: str = sys.executable
    """The name of the interpreter, if this one is too old."""

    @property
    def folder(self) -> Path:
        return _home() / self.name

    @property
    def script(self) -> Path:
        return SCRIPTS / f"{self.name.replace('-', '_')}.{'mjs' if self.is_node else 'py'}"

    @property
    def programs(self) -> Path:
        return self.folder / ("node_modules/.bin" if self.is_node else "env/bin")

    def install(self) -> None:
        """Raises RuntimeError if the installation fails."""
        if self.is_node and self != NODE:
            NODE.install()
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with (_home() / f"{self.name}.lock").open("ab") as lock:
            while not try_lock(lock.fileno()):  # another test process installs it
                time.sleep(0.1)
            mark = self.folder / "installed"
            if not mark.exists() or mark.read_text(encoding="utf-8") != repr(self.packages):
                self._install_packages()
                mark.write_text(repr(self.packages), encoding="utf-8")

    def _install_packages(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        if self.is_node:
            (self.folder / "package.json").write_text('{"private": true}', encoding="utf-8")
            variables = {**os.environ, "PATH": self._path()}
            _run(["npm", "install", "--no-audit", "--no-fund", *self.packages], self.folder, variables)
        elif shutil.which("uv"):
            _run(["uv", "venv", "--quiet", "--python", self.python, "env"], self.folder)
            _run(["uv", "pip", "install", "--quiet", "--python", "env/bin/python", *self.packages], self.folder)
        else:
            _run([self.python, "-m", "venv", "env"], self.folder)
            _run(["env/bin/python", "-m", "pip", "install", "--quiet", *self.packages], self.folder)

    @property
    def version(self) -> str:
        package = re.split(r"\[|(?<=.)@", self.packages[0])[0]
        if self.is_node:
            about = self.folder / "node_modules" / package / "package.json"
            return str(json.loads(about.read_text(encoding="utf-8"))["version"])
        code = f"import importlib.metadata as m; print(m.version({package!r}))"
        return _run(["env/bin/python", "-c", code], self.folder).strip()

    def run(self, way: str, url: str) -> str:
        """Return the client's output with the server at ``url``, without ``/v1``."""
        variables = {**self._variables(), "ADAPTER_URL": url, "HOME": str(self.folder)}
        if self.is_node:  # where modules are found goes by where the script lies
            script = self.folder / self.script.name
            script.write_bytes(self.script.read_bytes())
            return _run(["node", str(script), way], self.folder, variables)
        # without the script's folder among those of modules, where it may have the name of one
        return _run([str(self.programs / "python"), "-P", str(self.script), way], self.folder, variables)

    def run_program(self, program: str, way: str, url: str, *arguments: str) -> str:
        """Return the output of ``program``, which runs in place of the client's script; ``arguments`` follow the
        API.
        """
        script = self.folder / f"program{self.script.suffix}"  # where Node finds modules goes by where the script lies
        script.write_text(program, encoding="utf-8")
        line = ["node"] if self.is_node else [str(self.programs / "python"), "-P"]
        variables = {**self._variables(), "ADAPTER_URL": url, "HOME": str(self.folder)}
        return _run([*line, str(script), way, *arguments], self.folder, variables)

    def _variables(self) -> dict[str, str]:
        """Return the environment without the shell's proxies and keys."""
        kept = {name: value for name, value in os.environ.items() if not name.upper().endswith(("PROXY", "_KEY"))}
        return {**kept, "PATH": self._path(), "OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}

    def _path(self) -> str:
        """Return PATH with the client's own programs first."""
        return os.pathsep.join((str(self.programs), str(NODE.programs), os.environ["PATH"]))


@dataclass(frozen=True, kw_only=True)
class Command(Client):
    """A client that is a command and runs in an empty home folder. In ``line``, in the texts of ``files`` and in the
    values of ``variables``, ``WRITTEN`` is replaced by the server's address and ``{way}`` by the API.
    """

    line: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)

    def run(self, way: str, url: str) -> str:
        def filled(text: str) -> str:
            return text.replace(WRITTEN, url).replace("{way}", way)

        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
            for name, text in self.files.items():
                path = Path(home, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(filled(text), encoding="utf-8")
            own = {name: filled(value) for name, value in self.variables.items()}
            variables = {**self._variables(), "HOME": home, "PWD": home, **own}
            program, *arguments = map(filled, self.line)
            return _run([str(self.programs / program), *arguments], Path(home), variables)


NODE = Client(name="node", packages=("node@22",), ways=(), is_node=True)


def _home() -> Path:
    return Path(os.environ.get("ADAPTER_CLIENTS", "~/.cache/toolcall-adapter/clients")).expanduser()


def _run(command: list[str], folder: Path, variables: dict[str, str] | None = None) -> str:
    """Return the output. Raises RuntimeError with the output if the command fails or does not end."""
    try:
        done = subprocess.run(
            command, cwd=folder, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300
        )
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"{' '.join(command)} did not end within {error.timeout} s") from error
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout
