"""The published wheel has everything that the program needs, and its page has no dead links."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapter import __version__

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    pytest.importorskip("hatchling", reason="needs the extra dev")
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as file:
        yield file


def metadata(wheel: zipfile.ZipFile) -> str:
    (name,) = (name for name in wheel.namelist() if name.endswith("/METADATA"))
    return wheel.read(name).decode()


def test_the_wheel_is_whole(wheel):
    """Every module and data file, but no tests."""
    held = set(wheel.namelist())
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "adapter").rglob("*.py")} <= held
    prompts = {f"adapter/_data/{path.relative_to(ROOT)}" for path in (ROOT / "prompts").rglob("*") if path.is_file()}
    assert prompts | {"adapter/py.typed", "adapter/_data/fixtures/demo/settings.ini"} <= held
    assert not any(name.startswith(("tests/", "benchmarks/")) for name in held)


def test_its_page_has_no_link_into_the_repository(wheel):
    """An index shows only the README, so links into the repository become text."""
    page = metadata(wheel)
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert links
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert "docs/install.md lists the extras" in page
    assert "![" not in page


def test_metadata_names_systems_and_versions(wheel):
    """With the systems and versions that the README names."""
    page = metadata(wheel)
    assert "Classifier: Operating System :: MacOS\n" in page
    assert "Classifier: Operating System :: POSIX :: Linux\n" in page
    assert "Requires-Python: >=3.11\n" in page


def test_the_version_is_one(wheel):
    assert f"Version: {__version__}\n" in metadata(wheel)


def test_conditions_name_tests_that_exist():
    """A missing path would fail only in CI."""
    script = (ROOT / ".ci" / "conditions").read_text(encoding="utf-8")
    words = re.findall(r"(?<=[\s(])tests/[^\s\\()]+", script)
    assert len(words) > 5
    expanded = subprocess.run(["bash", "-c", f"printf '%s\\n' {' '.join(words)}"], capture_output=True, text=True)
    assert [path for path in expanded.stdout.split() if not (ROOT / path).exists()] == []
