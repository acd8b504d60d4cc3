"""Check the extras, sandbox, folders and model servers of this machine, for `adapter doctor`."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from adapter.backends.builtin_model import find_builtin_model
from adapter.backends.endpoint_discovery import LOCAL_PORTS, Endpoint, detect_server_kind, find_first_model
from adapter.backends.in_process_llama_cpp import INSTALL, is_available
from adapter.backends.prompt_discovery import PromptDiscoverer
from adapter.core.events import JsonObject
from adapter.core.install_advice import build_install_command
from adapter.core.version import __version__
from adapter.workspace.changes.journal import find_state_home
from adapter.workspace.paths import openat2
from adapter.workspace.paths.descriptor_syscalls import DescriptorCalls, calls
from adapter.workspace.sandbox import landlock
from adapter.workspace.sandbox.bubblewrap import find_bwrap
from adapter.workspace.sandbox.sandbox import ActiveSandbox, Level, SandboxSettings, find_unavailable_reason
from adapter.workspace.sandbox.seccomp import LOCAL, build_socket_filter

PORT_TIMEOUT_S = 0.5
"""Maximum time to wait for an answer on a model server's default port, in seconds."""
EXTRAS = {
    "embedded": "llama.cpp inside this program, for `adapter demo` and `.gguf` files",
    "server": "`adapter serve`",
    "metrics": "Prometheus metrics of `adapter serve --metrics`",
    "otel": "OTLP traces of `adapter serve --otel`",
    "mcp": "tools of MCP servers, `adapter mcp`",
    "chat": "line editing and history in `adapter chat`",
    "index": "outlines and symbols in 15 languages",
    "web": "web pages as Markdown",
    "pdf": "text of PDF files",
    "code": "`code_execution`, in a sandbox",
    "batch": "Parquet and datasets for `adapter read`",
    "pytest": "recorded model responses in tests",
}
"""The optional extras, each with the features that need it."""
_REQUIREMENT = re.compile(r"([\w.-]+).*?extra\s*==\s*['\"]([\w-]+)['\"]")
LEVELS: tuple[Level, ...] = ("bwrap", "landlock")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check. ``advice`` is shown if the check failed, and ``data`` is printed with ``--json``."""

    name: str
    ok: bool
    text: str
    advice: str
    data: JsonObject


def run_checks(workspace: str, sandbox: SandboxSettings) -> tuple[CheckResult, ...]:
    """Run all checks. They query the default ports of model servers on this machine, and try each sandbox once."""
    return (
        _check_program(),
        *(_check_extra(name) for name in EXTRAS),
        _check_sandbox(workspace, sandbox),
        *(_check_level(level, os.path.realpath(workspace)) for level in LEVELS),
        _check_paths(),
        _check_openat2(),
        _check_state(),
        _check_builtin_model(),
        *(_check_server(port, name) for port, name in LOCAL_PORTS.items()),
    )


def _check_program() -> CheckResult:
    system = f"{platform.system()} {platform.release()} ({platform.machine()})"
    ok = platform.system() in ("Linux", "Darwin", "Windows")
    data: JsonObject = {"version": __version__, "python": platform.python_version(), "system": system}
    text = f"adapter {__version__}, Python {platform.python_version()} on {system}"
    advice = "this program was not tested on this system; it may not work"
    return CheckResult("program", ok, text, advice, data)


def _check_extra(name: str) -> CheckResult:
    """Check that all packages of an extra are installed."""
    needed = [match[1] for line in _list_requirements() if (match := _REQUIREMENT.match(line)) and match[2] == name]
    missing = [package for package in needed if not _is_installed(package)]
    text = "installed" if not missing else f"not installed: {', '.join(missing)}"
    advice = f"for {EXTRAS[name].replace('`', '')}: {build_install_command(name)}"
    return CheckResult(f"extra {name}", not missing, text, advice, {"missing": missing})


def _list_requirements() -> list[str]:
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


def _check_sandbox(workspace: str, settings: SandboxSettings) -> CheckResult:
    active = ActiveSandbox(settings, os.path.realpath(workspace))
    level = active.level
    data: JsonObject = {"level": level, "asked": settings.level, "network": settings.network}
    return CheckResult(
        "sandbox", level != "none", active.text.removeprefix("sandbox: "), "see bwrap and landlock below", data
    )


def _check_level(level: Level, workspace: str) -> CheckResult:
    gap = find_unavailable_reason(level, [workspace])
    data: JsonObject = {"available": gap is None, "why": gap.why if gap else "", "advice": gap.advice if gap else ""}
    if level == "bwrap":
        path = find_bwrap(os.environ, [workspace])[0] if gap is None else None
        data |= {"path": path}
        text = f"works, {path}"
    else:
        data |= {"abi": landlock.get_abi(), "socket_filter": build_socket_filter(LOCAL) is not None}
        text = f"works, ABI {landlock.get_abi()}"
    return CheckResult(level, gap is None, gap.why if gap else text, gap.advice if gap else "", data)


def _check_paths() -> CheckResult:
    ok = isinstance(calls, DescriptorCalls)
    text = "relative to directory descriptors" if ok else "checked before and after each call"
    advice = (
        "a program that replaces a folder at the right moment can redirect a change to a file outside the workspace: "
        "do not let untrusted programs change the workspace while a model works in it"
    )
    return CheckResult("paths", ok, text, advice, {"descriptors": ok})


def _check_openat2() -> CheckResult:
    ok = openat2.is_available()
    text = "works" if ok else "not available: paths are checked step by step, as safely but at half the speed"
    return CheckResult(
        "openat2", ok, text, "openat2 needs Linux 5.6 or later; a container must allow it", {"available": ok}
    )


def _check_state() -> CheckResult:
    folder = Path(find_state_home())
    existing = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    ok = existing.is_dir() and os.access(existing, os.W_OK)
    text = f"{folder}" + ("" if folder.exists() else " (created on the first change)")
    advice = "without this folder, changes cannot be undone: make it writable, or set XDG_STATE_HOME to another folder"
    return CheckResult(
        "state",
        ok,
        text if ok else f"{existing} is {'not writable' if existing.is_dir() else 'not a folder'}",
        advice,
        {"path": str(folder)},
    )


def _check_builtin_model() -> CheckResult:
    weights = find_builtin_model()
    data: JsonObject = {"engine": is_available(), "weights": None if weights is None else str(weights)}
    if not is_available():
        return CheckResult("built-in model", False, "the engine is not installed", INSTALL, data)
    if weights is None:
        return CheckResult(
            "built-in model", False, "the engine is installed, but its weights are not", "adapter setup", data
        )
    return CheckResult("built-in model", True, f"ready: {weights}", "", data)


def _check_server(port: int, name: str) -> CheckResult:
    endpoint = Endpoint(f"http://127.0.0.1:{port}/v1")
    kind = detect_server_kind(endpoint.base_url, PORT_TIMEOUT_S)
    text = f"{kind} answers at {endpoint.base_url}"
    prompt = _describe_prompt(Endpoint(endpoint.base_url, kind)) if kind else None
    text += f"; prompt: {prompt}" if prompt else ""
    data: JsonObject = {"port": port, "kind": kind, "base_url": endpoint.base_url if kind else None, "prompt": prompt}
    return CheckResult(f"port {port}", kind is not None, text if kind else f"{name} is not running", "", data)


def _describe_prompt(endpoint: Endpoint) -> str:
    """Describe how a server's prompts show the tools to its model. The server need not load the model for this."""
    if endpoint.kind == "ollama":
        return "the model's own template, if this version of Ollama shows its prompts"
    return PromptDiscoverer(endpoint).discover(find_first_model(endpoint)).explanation
