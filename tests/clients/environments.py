"""Clients, each with packages of its own: from PyPI in a virtual environment, from npm in a folder.

They are made once, below ``ADAPTER_CLIENTS`` (by itself ``~/.cache/toolcall-adapter/clients``), and stay there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"
RECIPES = Path(__file__).parents[2] / "docs" / "recipes"
WRITTEN = "http://127.0.0.1:8090"
"""The server's address in recipes."""


def settings(recipe: str) -> str:
    """What the page says to write into the client's file."""
    page = (RECIPES / f"{recipe}.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- config: \S+ -->\n```\w+\n(.*?)```", page, re.DOTALL)
    assert found, f"{recipe}.md has no block after <!-- config: NAME -->"
    return found[1]


@dataclass(frozen=True)
class Client:
    """``packages``: the first tells the version. ``ways``: what its script in ``scripts/`` takes as argument, each an
    interface that it speaks. ``recipe``: the page below ``docs/recipes/`` whose settings it is run with."""

    name: str
    packages: tuple[str, ...]
    ways: tuple[str, ...]
    is_node: bool = False
    recipe: str | None = None

    @property
    def folder(self) -> Path:
        home = os.environ.get("ADAPTER_CLIENTS", "~/.cache/toolcall-adapter/clients")
        return Path(home).expanduser() / self.name

    @property
    def script(self) -> Path:
        return SCRIPTS / f"{self.name.replace('-', '_')}.{'mjs' if self.is_node else 'py'}"

    def install(self) -> None:
        """Raises RuntimeError where that does not work."""
        mark = self.folder / "installed"
        if mark.exists() and mark.read_text(encoding="utf-8") == repr(self.packages):
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        if self.is_node:
            (self.folder / "package.json").write_text('{"private": true}', encoding="utf-8")
            _run(["npm", "install", "--no-audit", "--no-fund", *self.packages], self.folder)
        elif shutil.which("uv"):
            _run(["uv", "venv", "--quiet", "--python", sys.executable, "env"], self.folder)
            _run(["uv", "pip", "install", "--quiet", "--python", "env/bin/python", *self.packages], self.folder)
        else:
            _run([sys.executable, "-m", "venv", "env"], self.folder)
            _run(["env/bin/python", "-m", "pip", "install", "--quiet", *self.packages], self.folder)
        mark.write_text(repr(self.packages), encoding="utf-8")

    @property
    def version(self) -> str:
        package = self.packages[0].partition("[")[0]
        if self.is_node:
            about = self.folder / "node_modules" / package / "package.json"
            return str(json.loads(about.read_text(encoding="utf-8"))["version"])
        code = f"import importlib.metadata as m; print(m.version({package!r}))"
        return _run(["env/bin/python", "-c", code], self.folder).strip()

    def run(self, way: str, url: str) -> str:
        """What the script says with the server at ``url``, without ``/v1``."""
        environment = {
            **{name: value for name, value in os.environ.items() if not name.upper().endswith(("PROXY", "_KEY"))},
            "ADAPTER_URL": url,
            "OPENAI_API_KEY": "k",
            "ANTHROPIC_API_KEY": "k",
            "HOME": str(self.folder),
            **({"ADAPTER_CONFIG": settings(self.recipe).replace(WRITTEN, url)} if self.recipe else {}),
        }
        if self.is_node:  # where modules are found goes by where the script lies
            script = self.folder / self.script.name
            script.write_bytes(self.script.read_bytes())
            return _run(["node", str(script), way], self.folder, environment)
        return _run(["env/bin/python", str(self.script), way], self.folder, environment)


def _run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


CLIENTS = (
    Client("ai-sdk", ("ai", "@ai-sdk/openai", "@ai-sdk/openai-compatible", "@ai-sdk/anthropic", "zod"),
           ("responses", "chat", "compatible", "anthropic"), is_node=True),
    Client("openai-js", ("openai",), ("chat", "responses"), is_node=True),
    Client("anthropic-js", ("@anthropic-ai/sdk", "zod"), ("anthropic",), is_node=True),
    Client("ollama-js", ("ollama",), ("ollama",), is_node=True),
    Client("codex", ("@openai/codex",), ("responses",), is_node=True, recipe="llamacpp_codex"),
    Client("continue-cli", ("@continuedev/cli",), ("chat",), is_node=True, recipe="lmstudio_continue"),
    Client("opencode", ("opencode-ai",), ("chat",), is_node=True, recipe="ollama_opencode"),
    Client("agno", ("agno", "openai"), ("chat", "responses")),
    Client("autogen", ("autogen-agentchat", "autogen-ext[openai]"), ("chat",)),
    Client("haystack", ("haystack-ai",), ("chat",)),
    Client("instructor", ("instructor",), ("chat",)),
    Client("langchain", ("langchain", "langchain-openai", "langchain-ollama", "langchain-anthropic"),
           ("chat", "responses", "anthropic", "ollama")),
    Client("litellm", ("litellm", "mcp"), ("chat", "responses", "anthropic", "ollama")),
    Client("llama-index", ("llama-index-llms-openai-like", "llama-index-core"), ("chat",)),
    Client("openai-agents", ("openai-agents",), ("chat", "responses")),
    Client("pydantic-ai", ("pydantic-ai-slim[openai,anthropic]",), ("chat", "responses", "anthropic")),
    Client("smolagents", ("smolagents[openai]",), ("chat",)),
    Client("strands", ("strands-agents[openai,ollama,anthropic]",), ("chat", "anthropic", "ollama")),
)  # fmt: skip
