"""Shells complete commands, options and their values, by Typer's protocol of environment variables."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from adapter.cli.app import make_app
from adapter.cli.shell_completion import CHOICES, split_words_to_complete
from adapter.parsing.formats import FORMATS

SCRIPT = Path(sys.executable).with_name("adapter")


def environment(home: Path, **variables: str) -> dict[str, str]:
    path = f"{SCRIPT.parent}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(home), "XDG_CONFIG_HOME": str(home / "config")} | variables


def completed(home: Path, shell: str, line: str) -> list[str]:
    """Return the completions of the last word of ``line``."""
    words = {
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    variables = environment(home, _ADAPTER_COMPLETE=f"complete_{shell}", **words)
    # A narrow terminal must not wrap the answer.
    done = subprocess.run([SCRIPT], env=variables | {"COLUMNS": "40"}, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("adapter pl", ["playground", "plugin"]),
        ("adapter parse", ["parse"]),
        ("adapter tool in", ["install"]),
        ("adapter parse --po", ["--policy"]),
        ("adapter run --sandbox-r", ["--sandbox-read"]),
        ("adapter parse --policy s", ["strict", "safe"]),
        ("adapter run --constraint=p", ["prefer"]),
        ("adapter serve --format qwen", [name for name in sorted(FORMATS) if name.startswith("qwen")]),
        ("adapter prompt --dialect pro", ["proxyai", "promptly", "proto"]),
        ("adapter parse answer", []),
    ],
)
def test_bash_gets_the_words_that_fit(tmp_path, line, found):
    assert list(filter(None, completed(tmp_path, "bash", line))) == found


def test_profiles_are_completed(tmp_path):
    folder = tmp_path / "config" / "toolcall-adapter" / "profiles"
    folder.mkdir(parents=True)
    (folder / "qwen3_8b.toml").touch()
    assert completed(tmp_path, "bash", "adapter run --profile ") == ["auto", "none", "qwen3_8b"]


def test_fish_gets_one_line_for_each_word(tmp_path):
    """fish takes each line for a word, so descriptions must not be wrapped."""
    lines = completed(tmp_path, "fish", "adapter parse --f")
    assert [line.partition("\t")[0] for line in lines] == ["--format", "--finish-reason"]
    assert all("\t" in line for line in lines)


def test_zsh_gets_words_with_descriptions(tmp_path):
    assert '"--policy":"Accept calls' in "\n".join(completed(tmp_path, "zsh", "adapter parse --pol"))
    assert completed(tmp_path, "zsh", "adapter parse ") == ["_files"]


def test_only_the_command_in_the_line_is_imported(tmp_path):
    words = {"COMP_WORDS": "adapter\nparse\n--", "COMP_CWORD": "2"}
    variables = environment(tmp_path, _ADAPTER_COMPLETE="complete_bash", **words)
    command = [sys.executable, "-X", "importtime", str(SCRIPT)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    assert "--policy" in done.stdout.splitlines()
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "adapter.cli.options" in imported
    assert not imported & {"adapter.cli.serve", "adapter.cli.run", "openai", "rich.console"}


def test_the_line_is_read_only_for_a_shell_that_completes():
    words = {"COMP_WORDS": "adapter\nparse\n"}
    assert split_words_to_complete(words) == []
    assert split_words_to_complete(words | {"_ADAPTER_COMPLETE": "complete_bash"}) == ["adapter", "parse"]
    zsh = {"_TOOLCALL_ADAPTER_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "toolcall-adapter run --"}
    assert split_words_to_complete(zsh) == ["toolcall-adapter", "run", "--"]


def options(command: Any) -> list[Any]:
    inner = getattr(command, "commands", {}).values()
    return [param for each in inner for param in options(each)] or list(command.params)


def test_completed_values_are_those_that_the_help_names():
    found = dict.fromkeys(CHOICES, "auto")
    seen = set()
    for option in options(typer.main.get_command(make_app())):
        key = (option.name, str(option.metavar))
        if key in CHOICES:
            seen.add(key)
            found[key] += option.help
    assert seen == CHOICES.keys()
    assert not [(key, value) for key, help in found.items() for value in CHOICES[key] if value not in help]


def installed(home: Path, shell: str, script: str) -> str:
    """Return the output of ``script`` in a real shell, after `adapter --install-completion` in the same kind of
    shell.
    """
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    variables = environment(home)
    del variables["XDG_CONFIG_HOME"]  # Typer does not read it
    for text in ("adapter --install-completion; :", script):
        command = [program, "-c", text]
        done = subprocess.run(command, env=variables, cwd=home, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
    return done.stdout


def test_real_bash_completes(tmp_path):
    script = """
        source ~/.bashrc
        COMP_WORDS=(adapter parse --policy s) COMP_CWORD=3
        _adapter_completion adapter --policy s
        printf '%s\\n' "${COMPREPLY[@]}"
        complete -p adapter
    """
    *words, rule = installed(tmp_path, "bash", script).splitlines()
    assert words == ["strict", "safe"]
    assert rule == "complete -o default -F _adapter_completion adapter"


def test_real_fish_completes(tmp_path):
    script = "source ~/.config/fish/completions/adapter.fish; complete --do-complete 'adapter parse --policy s'"
    output = installed(tmp_path, "fish", script)
    assert [line.partition("\t")[0] for line in output.splitlines()] == ["safe", "strict"]


def test_real_zsh_loads_the_script(tmp_path):
    """Completion needs a line editor; without one, the function can be loaded and is registered."""
    script = "source ~/.zshrc; (( $+functions[_adapter_completion] )) || autoload -Uz _adapter; print $_comps[adapter]"
    assert "adapter" in installed(tmp_path, "zsh", script)
