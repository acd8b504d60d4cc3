"""The files in docs/deploy use options, variables and formats that exist."""

from __future__ import annotations

import configparser
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from adapter.cli.app import ENV_PREFIX, make_app
from adapter.cli.serve_config import read_model_setups, use_config_file
from adapter.core.errors import UsageError

FOLDER = Path(__file__).parent.parent / "docs" / "deploy"
INSTRUCTIONS = {
    *("FROM", "WORKDIR", "COPY", "RUN", "USER", "ENV", "EXPOSE", "HEALTHCHECK", "STOPSIGNAL", "ENTRYPOINT", "CMD"),
}


def context() -> Any:
    command = typer.main.get_command(make_app(["serve"]))
    serve = command.commands["serve"] if hasattr(command, "commands") else command
    return serve.make_context("serve", ["--upstream", "http://127.0.0.1:8080"], resilient_parsing=True)


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n\s*", "", (FOLDER / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def test_variables_are_options():
    names = {f"{ENV_PREFIX}_{param.name.upper()}" for param in context().command.params}
    for file in FOLDER.iterdir():
        used = set(re.findall(r"\bADAPTER_[A-Z_]+", file.read_text(encoding="utf-8")))
        assert used <= names, file.name


def test_container_file_is_well_formed():
    """It runs as a user without privileges, and has a health check."""
    words = [word for word, _ in instructions()]
    assert set(words) <= INSTRUCTIONS
    assert {"USER", "HEALTHCHECK", "ENTRYPOINT"} <= set(words[words.index("FROM", 1) :])
    extras = {
        name for _, rest in instructions() for found in re.findall(r"\[([\w,]+)\]'", rest) for name in found.split(",")
    }
    project = (FOLDER.parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    assert all(re.search(rf"^{name} = \[", project, re.MULTILINE) for name in extras)


def test_systemd_unit_starts_the_server():
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(FOLDER / "adapter.service", encoding="utf-8")
    program, command, *options = shlex.split(unit["Service"]["ExecStart"])
    assert program.endswith("/adapter")
    assert command == "serve"
    known = {name for param in context().command.params for name in param.opts}
    assert {each for each in options if each.startswith("--")} <= known


def test_configuration_file_is_accepted():
    """Each key is an option, and each value has its type."""
    file, found = FOLDER / "serve.toml", context()
    use_config_file(found, file)
    parsed = found.command.make_context("serve", [], default_map=found.default_map, resilient_parsing=True)
    assert parsed.params["max_streams"] == 4
    assert parsed.params["trusted_host"] == ["llm.example"]
    assert parsed.params["log_json"] is True
    assert read_model_setups(file)["qwen3-coder:30b"].format == "qwen3_coder"


def test_command_line_precedes_variables_and_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "serve.toml"
    file.write_text('host = "a"\nport = 1\nworkers = 1\n')
    monkeypatch.setenv("ADAPTER_HOST", "b")
    monkeypatch.setenv("ADAPTER_PORT", "2")
    monkeypatch.setenv("ADAPTER_CONFIG", str(file))
    parsed = context().command.make_context("serve", ["--host", "c"], auto_envvar_prefix=ENV_PREFIX).params
    assert [parsed[name] for name in ("host", "port", "workers")] == ["c", 2, 1]


def test_unknown_key_of_the_file_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "serve.toml"
    file.write_text("max-stream = 4\n")
    with pytest.raises(UsageError, match="unknown key 'max-stream'; did you mean 'max-streams'"):
        use_config_file(context(), file)
