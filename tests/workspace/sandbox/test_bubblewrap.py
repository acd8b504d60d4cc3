"""The bwrap that is run: the system's, or one on PATH that only the user could have put there."""

import os

import pytest

from adapter.core.errors import UsageError
from adapter.tools.operations import RunCommand
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.sandbox.bubblewrap import SYSTEM_BINARY, find_bwrap
from adapter.workspace.sandbox.sandbox import ActiveSandbox, SandboxSettings, find_unavailable_reason
from adapter.workspace.sandbox.shell import run_command


@pytest.fixture(autouse=True)
def _no_system_binary(monkeypatch):
    monkeypatch.setattr("adapter.workspace.sandbox.bubblewrap.SYSTEM_BINARY", "/no/such/bwrap")


@pytest.fixture
def tools(tmp_path):
    """A folder with a bwrap that only the user can change."""
    return planted(tmp_path / "tools")


def planted(folder):
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    (folder / "bwrap").write_text("#!/bin/sh\ntouch planted\n")
    (folder / "bwrap").chmod(0o755)
    return folder


def found(*path, writable=()):
    return find_bwrap({"PATH": ":".join(map(str, path))}, [str(folder) for folder in writable])


def test_bwrap_is_found_on_the_path(tools):
    assert found("/no/such/folder", tools) == (str(tools / "bwrap"), ())


def test_find_bwrap_resolves_link(tools, tmp_path):
    """As package managers create them."""
    (tmp_path / "profile").mkdir(mode=0o755)
    (tmp_path / "profile" / "bin").symlink_to(tools)
    assert found(tmp_path / "profile" / "bin") == (str(tools / "bwrap"), ())


@pytest.mark.parametrize("entry", ["", ".", "tools", "./tools", "../ws/tools"])
def test_find_bwrap_skips_relative_entries(tools, tmp_path, monkeypatch, entry):
    """They are a different folder in each workspace."""
    monkeypatch.chdir(tmp_path)
    assert found(entry) == (None, ())


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
@pytest.mark.parametrize("name", ["tools", "tools/bwrap"])
def test_find_bwrap_rejects_files_writable_by_others(tools, tmp_path, name, mode):
    """Also in a sticky folder, to which anyone can add files."""
    (tmp_path / name).chmod(mode)
    assert found(tools) == (None, (str(tools / "bwrap"),))


def test_find_bwrap_rejects_folders_renamable_by_others(tools, tmp_path):
    tmp_path.chmod(0o777)
    assert found(tools) == (None, (str(tools / "bwrap"),))


def test_find_bwrap_rejects_files_of_other_users(tools):
    if os.geteuid():
        pytest.skip("only root gives files to others")
    os.chown(tools / "bwrap", 12345, 12345)
    assert found(tools) == (None, (str(tools / "bwrap"),))


@pytest.mark.parametrize("way", ["folder", "link to the folder", "link to the file", "link through it"])
def test_find_bwrap_rejects_files_writable_by_the_model(tmp_path, tools, way):
    """In the workspace, or reached through a link in it."""
    workspace, outside = tmp_path / "ws", tmp_path / "outside"
    inside = planted(workspace / "bin")
    outside.mkdir(mode=0o755)
    (workspace / "link").symlink_to(tools)
    (outside / "bin").symlink_to(inside)
    (outside / "bwrap").symlink_to(inside / "bwrap")
    path = {"folder": inside, "link to the folder": outside / "bin", "link to the file": outside}.get(
        way, workspace / "link"
    )
    assert found(path, writable=[workspace]) == (None, (f"{path}/bwrap",))
    assert found(path, tools, writable=[workspace])[0] == str(tools / "bwrap")


def test_planted_bwrap_is_never_run(directory, monkeypatch):
    """Neither to test the sandbox nor for a command. The reason names it."""
    planted(directory / "bin")
    monkeypatch.setenv("PATH", f"{directory}/bin:.:{directory}")
    monkeypatch.chdir(directory / "bin")
    with pytest.raises(UsageError, match="bin/bwrap is not used: a model or another user could have planted it"):
        ActiveSandbox(SandboxSettings("bwrap"), str(directory))
    confinement = ActiveSandbox(SandboxSettings(), str(directory))
    assert confinement.level != "bwrap"
    confinement.close()
    assert not list(directory.rglob("planted"))


def test_folder_writable_for_commands_is_not_trusted(tools, directory, monkeypatch):
    monkeypatch.setenv("PATH", str(tools))
    with pytest.raises(UsageError, match="is not used"):
        ActiveSandbox(SandboxSettings("bwrap", write=(str(tools),)), str(directory))


def test_a_bwrap_on_the_path_confines(directory, tmp_path, monkeypatch):
    """The real one, in a folder of the user."""
    if not os.access(SYSTEM_BINARY, os.X_OK) and find_unavailable_reason("bwrap") is not None:
        pytest.skip(f"no bwrap here: {find_unavailable_reason('bwrap')}")
    real = SYSTEM_BINARY if os.access(SYSTEM_BINARY, os.X_OK) else find_bwrap(os.environ)[0]
    own = tmp_path / "own"
    own.mkdir(mode=0o755)
    (own / "bwrap").symlink_to(str(real))
    monkeypatch.setenv("PATH", f"{own}:/usr/bin:/bin")
    if find_unavailable_reason("bwrap") is not None:
        pytest.skip(f"bwrap does not work here: {find_unavailable_reason('bwrap')}")
    with WorkspaceRoot(directory) as root:
        confinement = ActiveSandbox(SandboxSettings("bwrap"), root.path)
        outcome = run_command(
            root, RunCommand("echo kept > file; ls /proc | grep -c '^[0-9]'; ls ../secret"), confinement
        )
        confinement.close()
    assert (directory / "file").read_text() == "kept\n"
    assert "No such file" in outcome.output
