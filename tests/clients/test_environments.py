"""Environments of clients are made once, also when two test processes ask for the same one."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.clients.environments import Client

CLIENT = Client(name="slow", packages=("slow",), ways=("chat",))


@pytest.mark.skipif(sys.platform == "win32", reason="the installer is a shell script")
def test_two_processes_make_one_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    installer = programs / "uv"
    installer.write_text(f"#!/bin/sh\necho $1 >> {tmp_path}/runs\nsleep 0.3\n", encoding="utf-8")
    installer.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("ADAPTER_CLIENTS", str(tmp_path / "clients"))
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda client: client.install(), [CLIENT, replace(CLIENT)]))
    assert (tmp_path / "runs").read_text(encoding="utf-8").split() == ["venv", "pip"]
