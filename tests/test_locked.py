"""A clone installs locked packages: exact versions with hashes that match pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
LOCKS = {"dev.txt": ["dev"], "ci.txt": ["dev", "clients", "browser", "release", "docs"], "one_file.txt": ["one-file"]}
"""The locks, and the extras that each is made from (`.ci/lock`)."""
RELOCK = "run .ci/lock"


@cache
def project() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def requirements(extras: list[str]) -> Iterator[Requirement]:
    """Return the requirements of the project and of these extras."""
    for line in project()["dependencies"] if extras in (LOCKS["dev.txt"], LOCKS["one_file.txt"]) else []:
        yield Requirement(line)
    for line in (line for extra in extras for line in project()["optional-dependencies"][extra]):
        wanted = Requirement(line)
        if wanted.name == project()["name"]:
            yield from requirements(sorted(wanted.extras))
        else:
            yield wanted


def locked(name: str) -> Iterator[tuple[str, Version, str]]:
    """Return the name, version and other data of each package of a lock."""
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    for entry in re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]:
        package, version = re.match(r"([a-z0-9.-]+)(?:\[.*?\])?==(\S+)", entry).groups()  # type: ignore[union-attr]
        yield canonicalize_name(package), Version(version), entry


@pytest.mark.parametrize("name", LOCKS)
def test_each_requirement_is_locked_to_a_version_that_it_admits(name):
    versions = {package: version for package, version, _ in locked(name)}
    for wanted in requirements(LOCKS[name]):
        version = versions.get(canonicalize_name(wanted.name))
        assert version is not None, f"{wanted.name} is in no lock: {RELOCK}"
        assert wanted.specifier.contains(version, prereleases=True), f"{wanted} is locked to {version}: {RELOCK}"


@pytest.mark.parametrize("name", LOCKS)
def test_nothing_is_locked_that_is_not_asked_for(name):
    """The direct packages of the lock are the packages in pyproject.toml."""
    ours = {package for package, _, entry in locked(name) if "toolcall-adapter (pyproject.toml)" in entry}
    base = [] if name == "one_file.txt" else requirements(LOCKS["dev.txt"])
    asked = {canonicalize_name(each.name) for each in [*base, *requirements(LOCKS[name])]}
    assert ours == asked, RELOCK


@pytest.mark.parametrize("name", LOCKS)
def test_all_is_hashed(name):
    assert [package for package, _, entry in locked(name) if "--hash=sha256:" not in entry] == []


def test_the_locks_agree():
    """Each package has the same version in all of them."""
    developed = {(package, version) for package, version, _ in locked("dev.txt")}
    assert developed <= {(package, version) for package, version, _ in locked("ci.txt")}
    packages = {package for package, _ in developed}
    assert {(package, version) for package, version, _ in locked("one_file.txt") if package in packages} <= developed


def test_build_requirements_are_locked():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    packages = {package for package, _, _ in locked("dev.txt")}
    assert {canonicalize_name(Requirement(line).name) for line in build} < packages


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_names_no_registry(name):
    """It is used with the user's own index."""
    assert "://" not in (ROOT / "requirements" / name).read_text(encoding="utf-8")


def test_each_requirement_has_a_lowest_version():
    """`.ci/conditions lowest_versions` runs tests with these versions."""
    extras = list(project()["optional-dependencies"])
    wanted = [*requirements(LOCKS["dev.txt"]), *requirements([name for name in extras if name != "dev"])]
    unbounded = [str(each) for each in wanted if not {spec.operator for spec in each.specifier} & {">=", "=="}]
    assert unbounded == []
