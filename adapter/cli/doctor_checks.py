"""Says what is there on this machine, what is missing, and what to do about it: ``adapter doctor``."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from adapter.backends.builtin_model import find_builtin_model
from adapter.backends.embedded_server import INSTALL, is_available
from adapter.backends.endpoint_discovery import LOCAL_PORTS, Endpoint, detect_server_kind, first_model
from adapter.backends.prompt_discovery import PromptDiscoverer
from adapter.core.events import JsonObject
from adapter.core.version import __version__
from adapter.workspace.changes.journal import state_home
from adapter.workspace.paths import openat2
from adapter.workspace.sandbox import landlock
from adapter.workspace.sandbox.bubblewrap import find_bwrap
from adapter.workspace.sandbox.sandbox import ActiveSandbox, Level, SandboxSettings, why_unavailable
from adapter.workspace.sandbox.seccomp import LOCAL, build_socket_filter

EXTRAS = {
    "embedded": "llama.cpp inside the program, for `adapter demo` and `.gguf` files",
    "server": "`adapter serve`",
    "metrics": "`adapter serve --metrics`, for Prometheus",
    "otel": "`adapter serve --otel`, traces by OTLP",
    "mcp": "tools of MCP servers, `adapter mcp`",
    "chat": "lines that can be edited, and come back, in `adapter chat`",
    "index": "outlines and symbols of 15 languages",
    "web": "pages as Markdown",
    "pdf": "the text of PDF files",
    "code": "`code_execution`, in a sandbox",
    "batch": "Parquet and datasets for `adapter read`",
    "pytest": "recorded answers in the place of a model, in tests",
}
"""The extras that add abilities, and which; the others are for developing this project."""
_REQUIREMENT = re.compile(r"([\w.-]+).*?extra\s*==\s*['\"]([\w-]+)['\"]")
LEVELS: tuple[Level, ...] = ("bwrap", "landlock")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One line of the report. ``advice`` says what to do when it is not ``ok``; ``data`` is the same for programs."""

    name: str
    ok: bool
    text: str
    advice: str
    data: JsonObject


def run_checks(workspace: str, sandbox: SandboxSettings, timeout_s: float = 0.5) -> tuple[CheckResult, ...]:
    """What is there. Asks the usual ports of this machine, and tries each sandbox once."""
    return (
        _program(),
        *(_extra(name) for name in EXTRAS),
        _in_force(workspace, sandbox),
        *(_level(level, os.path.realpath(workspace)) for level in LEVELS),
        _gate(),
        _state(),
        _model(),
        *(_server(port, name, timeout_s) for port, name in LOCAL_PORTS.items()),
    )


def _program() -> CheckResult:
    system = f"{platform.system()} {platform.release()} ({platform.machine()})"
    ok = platform.system() in ("Linux", "Darwin")
    data: JsonObject = {"version": __version__, "python": platform.python_version(), "system": system}
    text = f"adapter {__version__}, Python {platform.python_version()} on {system}"
    advice = "on Windows texts are read, prompts written and models served, not more: for the rest, use WSL"
    return CheckResult("program", ok, text, advice, data)


def _extra(name: str) -> CheckResult:
    """An extra is there when all that it asks for is installed."""
    needed = [found[1] for line in _requirements() if (found := _REQUIREMENT.match(line)) and found[2] == name]
    absent = [package for package in needed if not _is_installed(package)]
    text = "installed" if not absent else f"not installed: {', '.join(absent)}"
    advice = f"for {EXTRAS[name].replace('`', '')}: pip install 'toolcall-adapter[{name}]'"
    return CheckResult(f"extra {name}", not absent, text, advice, {"missing": absent})


def _requirements() -> list[str]:
    try:
        return metadata.requires("toolcall-adapter") or []
    except metadata.PackageNotFoundError:
        return []


def _is_installed(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def _in_force(workspace: str, settings: SandboxSettings) -> CheckResult:
    confinement = ActiveSandbox(settings, os.path.realpath(workspace))
    level = confinement.level
    data: JsonObject = {"level": level, "asked": settings.level, "network": settings.network}
    return CheckResult(
        "sandbox", level != "none", confinement.text.removeprefix("sandbox: "), "see the next lines", data
    )


def _level(level: Level, workspace: str) -> CheckResult:
    gap = why_unavailable(level, [workspace])
    data: JsonObject = {"available": gap is None, "why": gap.why if gap else "", "advice": gap.advice if gap else ""}
    if level == "bwrap":
        path = find_bwrap(os.environ, [workspace])[0] if gap is None else None
        data |= {"path": path}
        text = f"works, {path}"
    else:
        data |= {"abi": landlock.abi(), "socket_filter": build_socket_filter(LOCAL) is not None}
        text = f"works, ABI {landlock.abi()}"
    return CheckResult(level, gap is None, gap.why if gap else text, gap.advice if gap else "", data)


def _gate() -> CheckResult:
    ok = openat2.is_available()
    text = "works" if ok else "not available: paths are walked, which is as safe and takes twice the time"
    return CheckResult("openat2", ok, text, "it takes Linux 5.6, and a container that allows it", {"available": ok})


def _state() -> CheckResult:
    folder = Path(state_home())
    ground = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    ok = ground.is_dir() and os.access(ground, os.W_OK)
    text = f"{folder}" + ("" if folder.exists() else " (made when something is changed)")
    advice = "changes could not be undone: make it writable, or name another place in XDG_STATE_HOME"
    return CheckResult(
        "state",
        ok,
        text if ok else f"{ground} is {'not writable' if ground.is_dir() else 'no folder'}",
        advice,
        {"path": str(folder)},
    )


def _model() -> CheckResult:
    weights = find_builtin_model()
    data: JsonObject = {"engine": is_available(), "weights": None if weights is None else str(weights)}
    if not is_available():
        return CheckResult("built-in model", False, "the engine is not installed", INSTALL, data)
    if weights is None:
        return CheckResult("built-in model", False, "the engine is there, its weights are not", "adapter setup", data)
    return CheckResult("built-in model", True, f"ready: {weights}", "", data)


def _server(port: int, name: str, timeout_s: float) -> CheckResult:
    endpoint = Endpoint(f"http://127.0.0.1:{port}/v1")
    kind = detect_server_kind(endpoint.base_url, timeout_s)
    text = f"{kind} answers at {endpoint.base_url}"
    prompt = _prompt(Endpoint(endpoint.base_url, kind)) if kind else None
    text += f"; prompt: {prompt}" if prompt else ""
    data: JsonObject = {"port": port, "kind": kind, "base_url": endpoint.base_url if kind else None, "prompt": prompt}
    return CheckResult(f"port {port}", kind is not None, text if kind else f"no {name}", "", data)


def _prompt(endpoint: Endpoint) -> str:
    """Who describes the tools to its model, and why nobody better. Asks nothing that makes a server load a model."""
    if endpoint.kind == "ollama":
        return "the model's own, by Ollama's template, where this Ollama shows its prompts"
    return PromptDiscoverer(endpoint).discover(first_model(endpoint)).explanation
