"""An approval covers the state that was shown: if it changes meanwhile, nothing is done."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adapter.workspace import Workspace


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def make_program(path, text):
    write(path, text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def replace_keeping_times(path, text):
    """Replace the content by one of the same size, and restore the modification time."""
    before = path.stat()
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def retarget(project):
    (project / "to").unlink()
    (project / "to").symlink_to("other")


def plant(project, text):
    """Write programs into the folder that is first in PATH."""
    for name in ("planted", "sort"):
        make_program(project.parent / "bin" / name, f"#!/bin/sh\n{text}\n")


@pytest.fixture
def project(directory, monkeypatch):
    monkeypatch.setenv("PATH", f"{directory.parent}/bin:{os.environ['PATH']}")
    make_program(directory.parent / "bin" / "planted", "#!/bin/sh\ntouch ran\n")
    make_program(directory / "other", "#!/bin/sh\ntouch ran\n")
    (directory / "to").symlink_to("run")
    write(directory / "pkg/tool.py", "open('ran', 'w')\n")
    write(directory / "sub/build.sh", "touch ../ran\n")
    write(directory / "sub/x.ts", "run()\n")
    write(directory / "d/one.txt", "one\n")
    write(directory / "a.txt", "hello\n")
    write(directory / "Makefile", "all:\n\ttouch ran\n")
    write(directory / "build.sh", "touch ran\n")
    write(directory / "tool.py", "open('ran', 'w')\n")
    make_program(directory / "run", "#!/bin/sh\ntouch ran\n")
    return directory


def relink(project):
    (project / "link").symlink_to("run")


CHANGES: dict[str, tuple[tuple[str, dict[str, Any]], Callable[[Path], object]]] = {
    "entries-added": (("delete_file", {"path": "d", "recursive": True}), lambda at: write(at / "d/two.txt", "2\n")),
    "entries-added-below": (
        ("delete_file", {"path": "d", "recursive": True}),
        lambda at: write(at / "d/sub/two.txt", "2\n"),
    ),
    "entry-replaced": (
        ("delete_file", {"path": "d", "recursive": True}),
        lambda at: replace_keeping_times(at / "d/one.txt", "two\n"),
    ),
    "file-replaced": (("delete_file", {"path": "a.txt"}), lambda at: write(at / "a.txt", "important\n")),
    "moved-folder": (("move_file", {"source": "d", "destination": "e"}), lambda at: write(at / "d/two.txt", "2\n")),
    "copied-folder": (("copy_file", {"source": "d", "destination": "e"}), lambda at: write(at / "d/two.txt", "2\n")),
    "edited-file": (
        ("apply_edit", {"path": "a.txt", "old_text": "hello", "new_text": "bye"}),
        lambda at: write(at / "a.txt", "hello\nworld\n"),
    ),
    "created-file": (("write_file", {"path": "new", "content": "x\n"}), lambda at: write(at / "new", "mine\n")),
    "program": (("run_command", {"command": "./run", "cwd": "."}), lambda at: write(at / "run", "#!/bin/sh\nid>ran\n")),
    "program-in-chain": (
        ("run_command", {"command": "true && d/../run", "cwd": "."}),
        lambda at: write(at / "run", "#!/bin/sh\nid>ran\n"),
    ),
    "script-of-shell": (
        ("run_command", {"command": "sh -e build.sh", "cwd": "."}),
        lambda at: replace_keeping_times(at / "build.sh", "touch RAN\n"),
    ),
    "script-of-python": (
        ("run_command", {"command": "env X=1 python3 -B tool.py", "cwd": "."}),
        lambda at: write(at / "tool.py", "open('ran', 'a')\n"),
    ),
    "makefile": (
        ("run_command", {"command": "make all", "cwd": "."}),
        lambda at: write(at / "Makefile", "all:\n\ttouch ran2\n"),
    ),
    "script-of-another-program": (
        ("run_command", {"command": "poetry run python tool.py", "cwd": "."}),
        lambda at: write(at / "tool.py", "open('ran', 'a')\n"),
    ),
    "script-with-a-value": (
        ("run_command", {"command": "true --script=sub/x.ts", "cwd": "."}),
        lambda at: write(at / "sub/x.ts", "ran()\n"),
    ),
    "script-of-a-folder": (
        ("run_command", {"command": "cd sub; sh build.sh", "cwd": "sub"}),
        lambda at: write(at / "sub/build.sh", "touch ../ran2\n"),
    ),
    "redirected-script": (
        ("run_command", {"command": "sh < build.sh", "cwd": "."}),
        lambda at: write(at / "build.sh", "touch ran2\n"),
    ),
    "module-of-python": (
        ("run_command", {"command": "python3 -m pkg.tool", "cwd": "."}),
        lambda at: write(at / "pkg/tool.py", "open('ran', 'a')\n"),
    ),
    "package-of-python": (
        ("run_command", {"command": "python3 -m pkg", "cwd": "."}),
        lambda at: write(at / "pkg/__main__.py", "open('ran', 'a')\n"),
    ),
    "makefile-of-a-folder": (
        ("run_command", {"command": "make -C sub all", "cwd": "."}),
        lambda at: write(at / "sub/Makefile", "all:\n\ttouch ../ran2\n"),
    ),
    "makefile-of-another-name": (
        ("run_command", {"command": "make --file=other.mk", "cwd": "."}),
        lambda at: write(at / "other.mk", "all:\n\ttouch ran2\n"),
    ),
    "package-of-a-folder": (
        ("run_command", {"command": "npm --prefix sub test", "cwd": "."}),
        lambda at: write(at / "sub/package.json", "{}"),
    ),
    "link-retargeted": (("run_command", {"command": "./to", "cwd": "."}), retarget),
    "program-of-path": (("run_command", {"command": "planted", "cwd": "."}), lambda at: plant(at, "touch ran2")),
    "program-earlier-in-path": (("run_command", {"command": "sort a.txt", "cwd": "."}), lambda at: plant(at, "id")),
    "program-appears": (
        ("run_command", {"command": "./link", "cwd": "."}),
        relink,
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_call_is_refused_if_its_state_changed_while_the_user_was_asked(project, name):
    call, change = CHANGES[name]
    prints = []

    def approve(request):
        prints.append(request.fingerprint)
        change(project)
        return True

    with Workspace(project, approve=approve) as workspace:
        before = workspace.changes()
        result = workspace.run(*call)
        assert not result.ok
        assert "othing was done" in result.content or "not " in result.content
        assert workspace.changes() == before
    assert (project / "d/one.txt").exists()
    assert (project / "a.txt").exists()
    assert not (project / "ran").exists()


def test_refusal_describes_the_new_state(project):
    def approve(_):
        write(project / "d/two.txt", "2\n")
        return True

    with Workspace(project, approve=approve) as workspace:
        result = workspace.run("delete_file", {"path": "d", "recursive": True})
    assert "Approved: delete the directory d and the 1 entry in it" in result.content
    assert "Now: delete the directory d and the 2 entries in it (d/two.txt is new)" in result.content


@pytest.mark.parametrize(
    "call",
    [
        ("delete_file", {"path": "d", "recursive": True}),
        ("move_file", {"source": "d", "destination": "e"}),
        ("run_command", {"command": "./run && sh build.sh && cat a.txt", "cwd": "."}),
        ("apply_edit", {"path": "a.txt", "old_text": "hello", "new_text": "bye"}),
    ],
    ids=lambda call: call[0],
)
def test_unrelated_changes_do_not_refuse_a_call(project, call):
    def approve(_):
        write(project / "other.txt", "x\n")
        write(project / "sub/other.txt", "x\n")
        return True

    with Workspace(project, approve=approve) as workspace:
        result = workspace.run(*call)
    assert result.ok, result.content


def test_remembered_command_is_asked_again_if_its_program_changed(project):
    from adapter.tools.operations.permissions import ApprovalDecision

    asked = []

    def approve(request):
        asked.append(request.command)
        return ApprovalDecision(allowed=True, remember=True)

    call = ("run_command", {"command": "./run", "cwd": "."})
    with Workspace(project, approve=approve) as workspace:
        assert workspace.run(*call).ok
        assert workspace.run(*call).ok
        assert asked == ["./run"]
        write(project / "run", "#!/bin/sh\ntouch ran2\n")
        assert workspace.run(*call).ok
    assert asked == ["./run", "./run"]


def test_program_of_the_host_refuses_changed_state_as_well(project):
    from adapter.core.errors import ToolError
    from adapter.tools.operations import Delete

    def approve(_):
        write(project / "d/two.txt", "2\n")
        return True

    with (
        Workspace(project, approve=approve) as workspace,
        pytest.raises(ToolError, match=r"d/two\.txt is new"),
    ):
        workspace.perform(Delete("d", recursive=True))
    assert (project / "d/two.txt").exists()


def test_command_with_too_many_programs_is_refused(tmp_path):
    """An approval would cover only some of them."""
    with Workspace(tmp_path, approve="yolo") as workspace:
        command = "; ".join(f"./p{number}" for number in range(1_001))
        result = workspace.run("run_command", {"command": command})
    assert not result.ok
    assert "more than 1,000 programs and files; split it" in result.content
