"""What `adapter doctor` says is what is the case."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from adapter.cli import doctor_checks as doctor
from adapter.cli.doctor_checks import run_checks
from adapter.workspace.paths import openat2
from adapter.workspace.sandbox import landlock
from adapter.workspace.sandbox.sandbox import SandboxSettings, why_unavailable
from tests.command_line import adapter
from tests.scripted_server import ScriptedServer

ROOT = Path(__file__).parent.parent.parent


def run(*words, **env):
    return adapter("doctor", *words, env=env)


def test_it_prints_for_people_and_for_programs(tmp_path):
    """One line a finding, or one JSON object with the same; no secret of the environment in either."""
    env = {"OPENAI_API_KEY": "sk-canary-0123456789", "XDG_STATE_HOME": str(tmp_path)}
    text = run(**env)
    assert text.returncode == 0, text.stderr
    rows = json.loads(run("--json", **env).stdout)
    for name, row in rows.items():
        assert any(line[2:].startswith(name) and row["text"] in line for line in text.stdout.splitlines()), name
    assert rows["state"]["path"] == str(tmp_path / "toolcall-adapter")
    assert rows["program"]["python"] in text.stdout
    assert "sk-canary" not in text.stdout + text.stderr + json.dumps(rows)


def test_what_confines_commands_is_what_works_here():
    """The levels are tried, not guessed; `none` is no good finding."""
    rows = {finding.name: finding for finding in run_checks(".", SandboxSettings())}
    for level in ("bwrap", "landlock"):
        assert rows[level].ok == (why_unavailable(level) is None)
    assert not rows["bwrap"].ok or rows["bwrap"].text == f"works, {rows['bwrap'].data['path']}"
    assert rows["landlock"].data["abi"] == landlock.abi()
    assert rows["openat2"].ok == openat2.is_available()
    unconfined = {finding.name: finding for finding in run_checks(".", SandboxSettings("none"))}["sandbox"]
    assert not unconfined.ok
    assert unconfined.text.startswith("NONE")


def test_what_is_missing_comes_with_a_next_step(without_sandbox, monkeypatch, tmp_path):
    """Without bubblewrap, Landlock, extras, weights and a state folder."""
    monkeypatch.setattr(doctor, "_is_installed", lambda _: False)
    monkeypatch.setattr(doctor, "is_available", lambda: False)
    monkeypatch.setattr(doctor, "state_home", lambda: "/proc/nowhere")
    rows = {finding.name: finding for finding in run_checks(str(tmp_path), SandboxSettings())}
    assert "apt install bubblewrap" in rows["bwrap"].advice
    assert "Linux 5.13" in rows["landlock"].advice
    assert rows["sandbox"].text.startswith("NONE")
    assert rows["extra server"].advice == "for adapter serve: pip install 'toolcall-adapter[server]'"
    assert "uvicorn" in rows["extra server"].text
    assert "pip install" in rows["built-in model"].advice
    assert not any(rows[name].ok for name in ("bwrap", "landlock", "sandbox", "extra server", "built-in model"))


def test_a_file_in_the_place_of_the_state_folder_is_told(monkeypatch, tmp_path):
    """Nothing can be made in it, whatever its permissions."""
    (tmp_path / "state").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (found,) = (finding for finding in run_checks(str(tmp_path), SandboxSettings()) if finding.name == "state")
    assert (found.ok, found.text) == (False, f"{tmp_path / 'state'} is no folder")


def test_every_extra_for_users_is_looked_at():
    """All that the package offers but those for development."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    offered = set(project["optional-dependencies"])
    assert offered - {"dev", "bench", "browser", "clients", "docs", "release"} == set(doctor.EXTRAS)
    assert all(doctor._REQUIREMENT.match(line) for line in doctor._requirements() if "extra ==" in line)


def test_servers_are_found_by_their_ports(monkeypatch, scripted: ScriptedServer):
    """Only those that answer."""
    port = int(scripted.url.rpartition(":")[2])
    monkeypatch.setattr(doctor, "LOCAL_PORTS", {port: "vLLM", 9: "nobody"})
    rows = {finding.name: finding for finding in run_checks(".", SandboxSettings("none"))}
    assert rows[f"port {port}"].ok
    assert not rows["port 9"].ok


def test_require_fails_without_a_sandbox():
    """For scripts: an exit code."""
    done = run("--sandbox", "require")
    there = why_unavailable("bwrap") is None or why_unavailable("landlock") is None
    assert done.returncode == (0 if there else 2)
    assert run("--sandbox", "sometimes").returncode == 2
