"""Markdown and quotation marks around a path or a command are not a part of it."""

import pytest

from adapter.dialects import get_dialect
from adapter.tools import operations as ops
from adapter.workspace import Workspace

READ = {"blade": "read_file", "maki": "read", "proto": "read_file", "promptly": "ShowFileContents", "proxyai": "Read"}
RUN = {"blade": "run_command", "maki": "bash", "proxyai": "Bash"}


@pytest.mark.parametrize("dialect", READ)
@pytest.mark.parametrize("written", ["`a b.py`", "'a b.py'", '"a b.py"', "`a b.py`\n"])
def test_quotes_around_a_path_are_removed(directory, dialect, written):
    (directory / "a b.py").write_text("print(1)\n")
    tool = get_dialect(dialect).tools[READ[dialect]]
    with Workspace(directory, dialect) as workspace:
        result = workspace.run(tool.name, {tool.required[0]: written})
    assert "print(1)" in result.content


@pytest.mark.parametrize("dialect", RUN)
@pytest.mark.parametrize(
    ("written", "command"),
    [
        ("```bash\nls -a\npwd\n```", "ls -a\npwd"),
        ("`ls -a`", "ls -a"),
        ("$ ls -a\n$ pwd", "ls -a\npwd"),
        ("```\n$ ls -a\n```", "ls -a"),
        ("echo `ls -a`", "echo `ls -a`"),
        ("`which ls` `pwd`", "`which ls` `pwd`"),
        ("$ls -a", "$ls -a"),
        ("cat <<E\n$ ls\nE", "cat <<E\n$ ls\nE"),
    ],
)
def test_markdown_around_a_command_is_removed(dialect, written, command):
    """A shell would run the output of a command in backticks."""
    tool = get_dialect(dialect).tools[RUN[dialect]]
    assert tool.validate is not None
    operation = tool.validate({"command": written}).to_operation()
    assert isinstance(operation, ops.RunCommand)
    assert operation.command == command
