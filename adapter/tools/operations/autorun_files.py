"""Files by which a program of the user's runs something later, without being asked to: changes of them are asked about
where the mode allows edits. (A Makefile or a test does as much, but only for those who call it.)

SECURITY.md shows this table; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

RUN_LATER: dict[str, tuple[str, ...]] = {
    "shells read it when they start": (
        *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv"),
        *(".zprofile", ".zlogin", ".zlogout", ".inputrc", ".config/fish/"),
    ),
    "shells that enter the folder run it (direnv, mise, asdf)": (".envrc", ".mise.toml", "mise.toml", ".mise/"),
    "git runs it, or is told by it what to run": (
        *(".gitmodules", ".gitconfig", ".git-hooks/", ".githooks/", ".husky/", ".pre-commit-config.yaml"),
        *("lefthook.yml", ".lefthook.yml", ".lefthook/", ".lintstagedrc*", ".overcommit.yml"),
    ),
    "editors run its tasks, settings or commands when the folder is opened": (
        *(".vscode/", "*.code-workspace", ".idea/", ".run/", ".fleet/", ".zed/", ".devcontainer/"),
        *(
            ".devcontainer.json",
            "*.sublime-project",
            ".vimrc",
            ".exrc",
            ".nvimrc",
            ".nvim.lua",
            ".lvimrc",
            ".dir-locals.el",
        ),
    ),
    "package managers run its scripts, or fetch from where it says": (
        *("package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/", ".pnpmfile.cjs", "pnpm-workspace.yaml"),
        *(".pypirc", ".cargo/config", ".cargo/config.toml", ".mvn/", ".bundle/config"),
    ),
    "continuous integration runs it, often with keys": (
        *(".github/workflows/", ".github/actions/", ".gitlab-ci.yml", ".gitlab/", ".circleci/", "Jenkinsfile"),
        *("azure-pipelines.yml", ".travis.yml", "bitbucket-pipelines.yml", ".drone.yml", ".woodpecker.yml"),
        *(".woodpecker/", ".buildkite/", ".forgejo/workflows/", ".gitea/workflows/", "appveyor.yml", ".appveyor.yml"),
    ),
    "coding agents take it for your words, or start the servers that it names": (
        *("AGENTS.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", ".claude/", ".cursor/", ".cursorrules", ".gemini/"),
        *(".windsurfrules", ".windsurf/", ".clinerules", ".roo/", ".codex/", ".github/copilot-instructions.md"),
        *(".mcp.json", "mcp.json"),
    ),
    "this program runs the tools that it defines": ("tools.json",),
    "Python, or a debugger, runs it whenever it starts there": (
        *("sitecustomize.py", "usercustomize.py", "*.pth", ".pdbrc", ".gdbinit", ".lldbinit"),
    ),
    "programs log in, or choose whom to trust, by it": (".ssh/", ".netrc", ".ripgreprc", ".curlrc", ".wgetrc"),
}
"""Patterns as in `.gitignore`, at any depth and in any case, by the reason."""

GIT_DATA = "it is git's own data, or names what git runs: your next `git status` may run what stands there"


def autorun_reason(paths: Iterable[str]) -> str:
    """Why a change of ``paths`` is asked about; "" when it need not be."""
    for path in paths:
        for reason, spec in _specs():
            if spec.match_file(path.casefold()) or spec.match_file(f"{path.casefold()}/"):
                return reason
    return ""


@lru_cache(maxsize=1)
def _specs() -> list[tuple[str, GitIgnoreSpec]]:
    from pathspec import GitIgnoreSpec

    return [
        (reason, GitIgnoreSpec.from_lines([f"**/{pattern.casefold()}" for pattern in patterns], backend="simple"))
        for reason, patterns in RUN_LATER.items()
    ]
