"""The file tools that Maki and proto CLI share, under the names of each dialect."""

from __future__ import annotations

import os

import pytest

from adapter.workspace import Workspace
from tests.dialects.files import make_files

WRITE = {"maki": ("write", "path"), "proto": ("write_file", "file_path")}
"""The name of the tool, and of its path; `edit` has the same name in each dialect."""

pytestmark = pytest.mark.parametrize("dialect", WRITE)


@pytest.fixture
def call(directory, dialect):
    with Workspace(directory, dialect, "yolo") as workspace:
        yield lambda name, **arguments: workspace.run(name, arguments)


@pytest.fixture
def edit_arguments(dialect):
    _, path = WRITE[dialect]
    return lambda old, new, **more: {path: "f", "old_string": old, "new_string": new, **more}


def test_a_file_is_created_with_its_parents_or_overwritten(run, directory, dialect):
    """C103, C104, C105, C161, C163, X29: the file has exactly this content, which may be empty."""
    name, path = WRITE[dialect]
    assert run(name, **{path: "a/b/c", "content": "1\r\n"}) == "Created a/b/c (3 bytes)."
    assert (directory / "a/b/c").read_bytes() == b"1\r\n"
    assert run(name, **{path: "a/b/c", "content": ""}).startswith("Overwrote a/b/c (0 bytes)")
    assert (directory / "a/b/c").read_bytes() == b""


def test_an_edit_replaces_one_exact_place(run, refusal, directory, edit_arguments):
    """C106, C107, C108, C109, C164, C166, C167, X10, D1: whitespace counts. If several places match, the error names
    their lines, and nothing is changed.
    """
    (directory / "f").write_text("a\n  b\nc\na\n")
    assert run("edit", **edit_arguments("  b\n", "\tB\n")) == "Applied 1 patch to f."
    assert (directory / "f").read_text() == "a\n\tB\nc\na\n"
    error = refusal("edit", **edit_arguments("a", "x"))
    assert "lines 1 and 4" in error or "lines 1, 4" in error
    assert "replace_all" in error
    assert "old_string" in refusal("edit", **edit_arguments("nowhere to be found", "x"))
    assert (directory / "f").read_text() == "a\n\tB\nc\na\n"


def test_replace_all_takes_every_place(run, directory, edit_arguments):
    """C110, C168, X12."""
    (directory / "f").write_text("a\nb\na\n")
    run("edit", **edit_arguments("a", "x", replace_all=True))
    assert (directory / "f").read_text() == "x\nb\nx\n"


def test_glob_gives_the_newest_first(run, directory):
    """C111, C112, C113, C114, C174, C175, C176, X16, X26: by modification time alone, without the files that .gitignore
    names.
    """
    make_files(directory, "src/b.rs", "a.rs", "src/deep/c.rs", "target.rs")
    (directory / ".gitignore").write_text("target.rs\n")
    assert run("glob", pattern="**/*.rs") == "src/deep/c.rs\na.rs\nsrc/b.rs"
    assert run("glob", pattern="*.rs", path="src") == "src/b.rs"
    assert run("glob", pattern="**/*.rs", path="src") == "src/deep/c.rs\nsrc/b.rs"
    assert run("glob", pattern=f"{directory}/src/*.rs") == "src/b.rs"
    assert run("glob", pattern="*.py") == "No files match '*.py'."
    os.utime(directory / "src/b.rs")
    assert run("glob", pattern="**/*.rs").startswith("src/b.rs\n")


def test_a_long_list_of_files_is_truncated_with_a_note(run, directory):
    """C114, C174, X27: only the hundred newest are listed."""
    make_files(directory, *(f"{number:03}" for number in range(120)))
    text = run("glob", pattern="*")
    assert text.startswith("119\n118\n")
    assert text.endswith("\n020\n(only the first 100 are shown; be more specific)")
