"""Git's own data is recognized as the installed git recognizes it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from adapter.workspace.paths import git_data_detection
from adapter.workspace.paths.git_data_detection import (
    find_git_directory,
    find_paths_run_by_git,
    find_repositories,
    holds_repository,
    is_git_data,
    is_repository,
)

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="asks git")


def git(*words: str, cwd: Path) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=x", "-c", "user.email=x", *words], cwd=cwd, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / "top").mkdir()
    return tmp_path / "top"


@needs_git
def test_git_repositories_are_detected(top):
    """A bare repository, a separate folder, a linked worktree's data, and a copy of a `.git` under another name."""
    git("init", "-q", "--separate-git-dir", "sep", "work", cwd=top)
    git("init", "-q", "--bare", "bare", cwd=top)
    git("commit", "-q", "--allow-empty", "-m", "x", cwd=top / "work")
    git("worktree", "add", "-q", "../second", cwd=top / "work")
    shutil.copytree(top / "sep", top / "renamed")
    for name in ("sep", "bare", "renamed", "sep/worktrees/second"):
        assert is_repository(str(top / name)), name
    for name in ("work", "second", "sep/objects", "sep/refs"):
        assert not is_repository(str(top / name)), name
    assert find_git_directory(str(top / "work")) == str(top / "sep")
    git("config", "core.hooksPath", "hooks-here", cwd=top / "work")
    assert "hooks-here" in set(find_paths_run_by_git(str(top / "second")))
    assert find_git_directory(str(top / "second")) == str(top / "sep/worktrees/second")
    assert holds_repository(str(top))
    assert not holds_repository(str(top / "work"))


@needs_git
@pytest.mark.parametrize("last", ["HEAD", "objects/info/x", "refs/heads/x"])
def test_creating_a_repository_is_detected(top, last):
    """Whichever part is created last."""
    git("init", "-q", "--bare", "bare", cwd=top)
    piece = top / "bare" / last.split("/")[0]
    (shutil.rmtree if piece.is_dir() else Path.unlink)(piece)
    assert not is_git_data(str(top), ["bare", "config"])
    assert is_git_data(str(top), ["bare", *last.split("/")])


def test_paths_in_git_configuration_are_detected(top):
    """Hooks, watchers, filters and included files in the workspace."""
    (top / ".git").mkdir()
    (top / ".git" / "config").write_text(
        "[core]\n\thooksPath = .hooks\n\tfsmonitor = 'tools/watch' -v\n[include]\n\tpath = ../shared\n\tpath = /etc/x\n"
        f'[filter "x"]\n\tclean = python3 \\"{top}/clean.py\\" %f\n[branch "main"]\n\tremote = src\n'
    )
    named = set(find_paths_run_by_git(str(top)))
    assert {".hooks", "tools/watch", "shared", "clean.py"} <= named
    assert not {"src", "etc/x", ".."} & named
    assert is_git_data(str(top), [".hooks", "pre-commit"])
    assert not is_git_data(str(top), ["src", "a.py"])


@pytest.mark.parametrize(
    "value",
    ["{}/my hooks", '"{}/my hooks"', "my hooks", "sh '{}/my hooks' -v", 'sh \\"{}/my hooks\\" -v', 'sh \\"my hooks\\"'],
)
def test_configured_path_with_spaces_is_detected(top, value):
    """Absolute or relative, unquoted as git parses a path, or quoted for a shell."""
    spaced = top / "my project"
    (spaced / ".git").mkdir(parents=True)
    (spaced / ".git" / "config").write_text(f"[core]\n\tfsmonitor = {value.format(spaced)}\n")
    assert "my hooks" in set(find_paths_run_by_git(str(spaced)))
    assert is_git_data(str(spaced), ["my hooks", "pre-commit"])


def test_repositories_are_found_at_any_depth(top):
    """The nearest first, with the paths in their configuration, but not through links."""
    for folder in ("a/b/c/.git", "bare/refs", "bare/objects", "bare/.git", "far/tools"):
        (top / folder).mkdir(parents=True)
    (top / "bare" / "HEAD").touch()
    (top / "far" / ".git").write_text("gitdir: ../../elsewhere")
    (top / "a" / "b" / "c" / ".git" / "config").write_text("[core]\n\thooksPath = run\n\tfsmonitor = gone\n")
    (top / "a" / "b" / "c" / "run").mkdir()
    (top / "link").symlink_to("a")
    (top.parent / "elsewhere").mkdir()
    wanted = ["bare", "far/.git", "a/b/c/.git", "a/b/c/run"]
    assert find_repositories(str(top)) == [f"{top}/{name}" for name in wanted]
    assert is_git_data(str(top), ["a", "b", "c", "run", "pre-commit"])
    assert not is_git_data(str(top), ["a", "b", "run", "pre-commit"])


def test_search_for_repositories_is_limited(top, monkeypatch):
    """The nearest ones are returned."""
    for number in range(30):
        (top / f"{number:02}" / "deep" / ".git").mkdir(parents=True)
    assert len(find_repositories(str(top))) == 30
    monkeypatch.setattr(git_data_detection, "MAX_REPOSITORIES", 7)
    assert find_repositories(str(top)) == [f"{top}/{number:02}/deep/.git" for number in range(7)]
    monkeypatch.setattr(git_data_detection, "MAX_SEEN", 50)
    assert find_repositories(str(top)) == []
