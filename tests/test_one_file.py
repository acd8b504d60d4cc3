"""The one file unpacks itself once, however it is started. `.ci/run` builds and tries it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SOURCES = Path(__file__).parent.parent / ".ci" / "one_file"
PROGRAM = '#!/bin/sh\necho "$0" "$@"\n'


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SOURCES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def one_file(tmp_path: Path) -> Path:
    folder = tmp_path / "program"
    (folder / "_internal").mkdir(parents=True)
    (folder / "adapter").write_text(PROGRAM, encoding="utf-8")
    (folder / "adapter").chmod(0o755)
    (folder / "_internal" / "data").write_bytes(os.urandom(200_000))
    output = tmp_path / "adapter"
    load("pack").pack(folder, output)
    return output


def start(file: Path, *words: str, **environ: str) -> subprocess.Popen[str]:
    variables = {"PATH": os.environ["PATH"]} | environ
    return subprocess.Popen([file, *words], env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_it_runs_the_program_and_unpacks_it_once(one_file, tmp_path):
    home = tmp_path / "a home"
    home.mkdir()
    for _ in range(2):
        output, errors = start(one_file, "parse", "a b", HOME=str(home)).communicate()
        assert errors == ""
        (folder,) = (home / ".cache" / "toolcall-adapter").iterdir()
        assert output == f"{folder}/adapter parse a b\n"
        assert sorted(path.name for path in folder.iterdir()) == ["_internal", "adapter"]
        (folder / "_internal" / "data").chmod(0o600)  # would be overwritten
    assert (folder / "_internal" / "data").stat().st_mode & 0o777 == 0o600


def test_processes_that_unpack_at_the_same_time_do_not_disturb_each_other(one_file, tmp_path):
    running = [start(one_file, "x", XDG_CACHE_HOME=str(tmp_path / "cache")) for _ in range(8)]
    outputs = {process.communicate() for process in running}
    (folder,) = (tmp_path / "cache" / "toolcall-adapter").iterdir()
    assert outputs == {(f"{folder}/adapter x\n", "")}
    assert sorted(path.name for path in folder.iterdir()) == ["_internal", "adapter"]


def test_missing_home_names_the_variable_to_set(one_file):
    process = start(one_file, "x")
    assert "set HOME or XDG_CACHE_HOME" in process.communicate()[1]
    assert process.returncode != 0


def test_damaged_file_leaves_nothing(one_file, tmp_path):
    one_file.write_bytes(one_file.read_bytes()[:-50_000])
    process = start(one_file, "x", HOME=str(tmp_path))
    process.communicate()
    assert process.returncode != 0
    assert list((tmp_path / ".cache" / "toolcall-adapter").iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["-I", "-X", "utf8", "{file}", "a"],
        ["-P", "{file}", "a"],
        ["-I", "-S", "-X", "utf8", "-c", "import sys; print(sys.argv[1:], __name__)", "a"],
        ["-m", "worker", "a"],
    ],
)
def test_its_executable_runs_the_workers_of_the_program(arguments, tmp_path):
    """They are started like Python. LD_LIBRARY_PATH, which PyInstaller changes, is restored."""
    worker = tmp_path / "worker.py"
    worker.write_text("import sys, os; print(sys.argv[1:], __name__)\n", encoding="utf-8")
    entry = (SOURCES / "entry.py").read_text(encoding="utf-8").replace("\nmain()\n", "")
    program = tmp_path / "program.py"
    end = "\nmain()\nassert os.environ['LD_LIBRARY_PATH'] == '/was'\n"
    program.write_text(entry + end, encoding="utf-8")
    words = [word.format(file=worker) if word == "{file}" else word for word in arguments]
    variables = {"PYTHONPATH": str(tmp_path), "LD_LIBRARY_PATH": "/frozen", "LD_LIBRARY_PATH_ORIG": "/was"}
    done = subprocess.run([sys.executable, program, *words], env=variables, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("['a'] __main__\n", "")
