"""Files that other programs run later, such as shell profiles and CI configuration.

Changing them needs approval even if the approval mode allows edits. (A Makefile or test also runs code, but only when
invoked.) SECURITY.md shows this table, and a test compares the two.
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
    "git runs it, or reads from it which programs to run": (
        *(".gitmodules", ".gitconfig", ".git-hooks/", ".githooks/", ".husky/", ".pre-commit-config.yaml"),
        *("lefthook.yml", ".lefthook.yml", ".lefthook/", ".lintstagedrc*", ".overcommit.yml"),
    ),
    "editors apply its settings, or run its tasks or commands, when they open the folder": (
        *(".vscode/", "*.code-workspace", ".idea/", ".run/", ".fleet/", ".zed/", ".devcontainer/"),
        *(".devcontainer.json", "*.sublime-project", ".vimrc", ".exrc", ".nvimrc", ".nvim.lua", ".lvimrc"),
        *(".dir-locals.el", ".dir-locals-2.el", ".helix/", ".theia/", ".nova/", ".lazy.lua", ".neoconf.json"),
        *(".idx/", ".gitpod.yml", ".gitpod.Dockerfile", ".replit"),
    ),
    "package managers run its scripts, or fetch packages from its URLs": (
        *("package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/", ".pnpmfile.cjs", "pnpm-workspace.yaml"),
        *(".pypirc", ".cargo/config", ".cargo/config.toml", ".mvn/", ".bundle/config", "bunfig.toml", ".bunfig.toml"),
        *("rust-toolchain", "rust-toolchain.toml", "gradle-wrapper.properties", "nuget.config", "uv.toml"),
    ),
    "continuous integration runs it, often with keys": (
        *(".github/workflows/", ".github/actions/", ".gitlab-ci.yml", ".gitlab/", ".circleci/", "Jenkinsfile"),
        *("azure-pipelines.yml", ".travis.yml", "bitbucket-pipelines.yml", ".drone.yml", ".woodpecker.yml"),
        *(".woodpecker/", ".buildkite/", ".forgejo/workflows/", ".gitea/workflows/", "appveyor.yml", ".appveyor.yml"),
        *(".azure-pipelines/", "azure-pipelines.yaml", ".cirrus.yml", ".cirrus.star", ".semaphore/", ".teamcity/"),
        *(".tekton/", ".builds/", ".build.yml", "buildspec.yml", "cloudbuild.yaml", "cloudbuild.yml", "netlify.toml"),
    ),
    "coding agents follow it as your instructions, or start the servers that it names": (
        *("AGENTS.md", "AGENT.md", "AGENTS.override.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", "QWEN.md"),
        *("CRUSH.md", "WARP.md", "replit.md", "SKILL.md", "*.agent.md", "*.prompt.md", "*.instructions.md"),
        *("*.chatmode.md", ".rules", ".cursorrules", ".windsurfrules", ".clinerules", ".goosehints"),
        *(".augment-guidelines", ".roomodes", ".roorules", ".aider*", "opencode.json", "opencode.jsonc"),
        *("crush.json", ".crush.json", ".mcp.json", "mcp.json", "mcp_config.json", ".mcp/"),
        *(".*/skills/", ".*/agents/", ".*/commands/", ".*/plugin/", ".*/plugins/", ".*/hooks/", ".*/rules/"),
        *(".*/prompts/", ".*/steering/", ".*/mcp.json", ".github/copilot-instructions.md", ".github/agents/"),
        *(".github/chatmodes/", ".github/hooks/", ".github/instructions/", ".github/prompts/", ".github/skills/"),
        *(".adapter/", ".agent/", ".agents/", ".aiassistant/", ".amazonq/", ".augment/", ".claude/", ".cline/"),
        *(".codex/", ".continue/", ".copilot/", ".crush/", ".cursor/", ".factory/", ".gemini/", ".goose/", ".iflow/"),
        *(".junie/", ".kilo/", ".kilocode/", ".kiro/", ".maki/", ".openhands/", ".opencode/", ".pi/", ".proto/"),
        *(".proxyai/", ".qoder/", ".qwen/", ".roo/", ".trae/", ".vibe/", ".windsurf/", ".zencoder/"),
    ),
    "this program runs the tools that it defines": ("tools.json",),
    "an interpreter or a debugger runs it when it is started in the folder": (
        *("sitecustomize.py", "usercustomize.py", "*.pth", ".pdbrc", ".pdbrc.py", ".gdbinit", ".lldbinit"),
        *(".Rprofile", ".irbrc", ".pryrc", ".octaverc", ".ghci"),
    ),
    "programs read credentials or trusted hosts from it": (".ssh/", ".netrc", ".ripgreprc", ".curlrc", ".wgetrc"),
}
"""Patterns for such files, grouped by the reason for approval. They match as in `.gitignore`, at any depth and in any
letter case."""

GIT_DATA = "it is git's own data, or names programs that git runs: your next `git status` may run them"


def explain_autorun(paths: Iterable[str]) -> str:
    """Return why a change to ``paths`` needs approval, or "" if it does not."""
    for path in paths:
        for reason, spec in _compile_specs():
            if spec.match_file(path.casefold()) or spec.match_file(f"{path.casefold()}/"):
                return reason
    return ""


@lru_cache(maxsize=1)
def _compile_specs() -> list[tuple[str, GitIgnoreSpec]]:
    from pathspec import GitIgnoreSpec

    return [
        (reason, GitIgnoreSpec.from_lines([f"**/{pattern.casefold()}" for pattern in patterns], backend="simple"))
        for reason, patterns in RUN_LATER.items()
    ]
