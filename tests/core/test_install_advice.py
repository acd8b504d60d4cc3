"""The advice to install an extra works where the program is installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from adapter.core.install_advice import build_install_command

RECEIPT = """\
[tool]
requirements = [{ name = "toolcall-adapter", extras = ["server", "embedded"] }, { name = "ruff" }]
"""


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return tmp_path


def test_pip_adds_the_extra(environment):
    assert build_install_command("index") == "pip install 'toolcall-adapter[index]'"


@pytest.mark.parametrize(
    ("receipt", "extras"),
    [
        (RECEIPT, "server,embedded,index"),
        ('[tool]\nrequirements = [{ name = "toolcall-adapter" }]\n', "index"),
        ('[tool]\nrequirements = [{ name = "toolcall-adapter", extras = ["index"] }]\n', "index"),
        ("[tool]\n", "index"),
        ("not TOML", "index"),
    ],
)
def test_uv_gets_all_extras_because_it_replaces_them(environment, receipt, extras):
    (environment / "uv-receipt.toml").write_text(receipt, encoding="utf-8")
    assert build_install_command("index") == f"uv tool install 'toolcall-adapter[{extras}]'"


def test_pipx_injects_the_extra(environment):
    (environment / "pipx_metadata.json").touch()
    assert build_install_command("index") == "pipx inject toolcall-adapter 'toolcall-adapter[index]'"


def test_the_one_file_cannot_be_extended(environment, monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert build_install_command("index") == "uv tool install 'toolcall-adapter[index]'"
