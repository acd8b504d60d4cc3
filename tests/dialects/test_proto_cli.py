"""proto CLI's document, statement by statement: names, arguments, defaults, results and confirmation."""

from __future__ import annotations

import base64

import pytest

from adapter.dialects.proto_cli import DIALECT
from adapter.prompting.system_prompt import system_prompt
from adapter.tools.operations import MediaKind
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host_capabilities import Host
from tests.approvals import record_requests
from tests.dialects.files import make_files

TOOLS = DIALECT.tools
MEDIA: dict[MediaKind, bytes] = {
    "image": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "pdf": b"%PDF-1.4\n\xe2\xe3\xcf\xd3\n",
    "audio": b"RIFF\0\0\0\0WAVEfmt \0",
    "video": b"\0\0\0\x18ftypmp42\0\0\0\0",
}


# --------------------------------------------------------------------- definitions


def test_prompt_has_the_rules_of_the_document():
    """C099, C108: lines count from 0 and need a limit; an edit has three lines of context, as in the example."""
    prompt = system_prompt("proto", style="full")
    assert "0-based line number to start reading from (requires limit)" in prompt
    assert "include 3+ lines of context" in prompt
    example = TOOLS["edit"].example
    assert example is not None
    assert example["old_string"].count("\n") >= 3


# ----------------------------------------------------------------- paths and asking


def test_absolute_paths_are_taken_and_those_outside_are_not(run, refusal, directory, tmp_path):
    """C089, C093, C098, C104, C107, C113, C117, X2, D10: in every tool. Relative paths start at the project root."""
    make_files(directory, "d/f", text="a\n")
    (tmp_path / "ws-evil").mkdir()
    (tmp_path / "ws-evil" / "f").write_text("a\n")
    for path in (str(directory / "d"), "d"):
        assert run("list_directory", path=path) == "d/\nf"
        assert run("read_file", path=f"{path}/f") == "a\n"
        assert run("glob", pattern="*", path=path) == "d/f"
        assert run("grep_search", pattern="a", path=path) == "d/f:1:a"
        run("write_file", file_path=f"{path}2/g/h", content="x")
        run("edit", file_path=f"{path}2/g/h", old_string="x", new_string="a\n")
    for outside in (str(tmp_path / "ws-evil"), "../ws-evil"):
        assert "outside" in refusal("list_directory", path=outside)
        assert "outside" in refusal("read_file", path=f"{outside}/f")
        assert "outside" in refusal("glob", pattern="*", path=outside)
        assert "outside" in refusal("grep_search", pattern="a", path=outside)
        assert "outside" in refusal("write_file", file_path=f"{outside}/f", content="x")
        assert "outside" in refusal("edit", file_path=f"{outside}/f", old_string="a", new_string="x")
    assert (tmp_path / "ws-evil" / "f").read_text() == "a\n"


@pytest.mark.parametrize(("mode", "asked"), [("ask", ["write_file", "edit"]), ("auto-edit", []), ("yolo", [])])
def test_only_writing_and_editing_ask(directory, mode, asked):
    """C090, C103, C106, X25: unless the mode is auto-edit or yolo. The other four tools never ask."""
    make_files(directory, "f", text="a\n")
    seen, ask = record_requests("tool", "diff")
    with Workspace(directory, "proto", mode, ask) as workspace:
        for name, arguments in [
            ("list_directory", {"path": "."}),
            ("read_file", {"path": "f"}),
            ("glob", {"pattern": "*"}),
            ("grep_search", {"pattern": "a"}),
            ("write_file", {"file_path": "g", "content": "b\n"}),
            ("edit", {"file_path": "f", "old_string": "a", "new_string": "b"}),
        ]:
            assert workspace.run(name, arguments).ok
    assert [tool for tool, _ in seen] == asked
    assert all("+b" in diff for _, diff in seen)


def test_either_name_of_a_path_is_understood(run, directory):
    """C091, X1: the program itself uses file_path for read_file, and models confuse them."""
    make_files(directory, "f", text="a\n")
    for name in ("path", "file_path", "filepath", "filename", "filePath", "target_file"):
        assert run("read_file", **{name: "f"}) == "a\n"
        run("write_file", **{name: "g", "content": "a\n"})
        run("edit", **{name: "g", "old_string": "a", "new_string": "b"})
        assert (directory / "g").read_text() == "b\n"
        (directory / "g").unlink()


# ------------------------------------------------------------------ list_directory


def test_a_listing_has_directories_first(run, directory):
    """C092, C096, X19: both alphabetically, one level, with a slash after directories."""
    make_files(directory, "b.txt", "A.txt", "z/inner", "y/inner")
    assert run("list_directory", path=".") == "./\ny/\nz/\nA.txt\nb.txt"
    assert run("list_directory", path="z") == "z/\ninner"
    (directory / "empty").mkdir()
    assert run("list_directory", path="empty") == "empty/ (empty)"


def test_ignore_excludes_matching_paths(run, directory):
    """C094: several globs, or a single one outside a list."""
    make_files(directory, "a.log", "b.log", "c.txt", "build/x")
    assert run("list_directory", path=".", ignore=["*.log", "build"]) == "./\nc.txt"
    assert run("list_directory", path=".", ignore="*.log") == "./\nbuild/\nc.txt"


def test_gitignore_is_respected_by_default(run, directory):
    """C095, X26: by the documented name, and by the program's own option object."""
    make_files(directory, "a.log", "b.txt")
    (directory / ".gitignore").write_text("*.log\n")
    whole = "./\n.gitignore\na.log\nb.txt"
    assert run("list_directory", path=".") == "./\n.gitignore\nb.txt"
    assert run("list_directory", path=".", respect_git_ignore=False) == whole
    assert run("list_directory", path=".", respect_git_ignore="false") == whole
    assert run("list_directory", path=".", file_filtering_options={"respect_git_ignore": False}) == whole
    assert "file_filtering_options" not in TOOLS["list_directory"].properties


def test_a_long_listing_reports_omitted_entries(run, directory):
    """C096, X27: the limit is the tool's own."""
    make_files(directory, *(f"{number:04}" for number in range(1_100)))
    text = run("list_directory", path=".")
    assert text.startswith("./\n0000\n")
    assert "(entries 1-1000 of 1100; narrow it" in text


# ----------------------------------------------------------------------- read_file


def test_a_file_is_read_as_it_is(run, directory):
    """C097, C098, X5: without line numbers. An empty file is reported."""
    make_files(directory, "f", text="  a\n\tb")
    make_files(directory, "empty")
    assert run("read_file", path="f") == "  a\n\tb"
    assert run("read_file", path="empty") == "(empty is empty)"


def test_lines_count_from_zero(run, directory):
    """C099, C100, X3: offset is the number of lines to skip."""
    make_files(directory, "f", text="0\n1\n2\n3\n")
    assert run("read_file", path="f", offset=0, limit=4) == "0\n1\n2\n3\n"
    assert run("read_file", path="f", offset=2, limit=2) == "2\n3\n"
    assert run("read_file", path="f", offset="3", limit="1") == "3\n"
    page = "Showing lines 2-2 of 4 (offset 2 is line 3; continue with offset 2 and limit 1).\n---\n1\n"
    assert run("read_file", path="f", offset=1, limit=1) == page
    assert run("read_file", path="f", limit=1).endswith("---\n0\n")


def test_an_offset_without_a_limit_is_taken_and_noted(call, directory):
    """C099, X3: a limit is required, but the meaning is clear."""
    make_files(directory, "f", text="0\n1\n2\n")
    result = call("read_file", path="f", offset=1)
    assert result.content == "1\n2\n(note: offset requires limit; 1000 lines were read by default)"
    assert result.notes == ("offset requires limit; 1000 lines were read by default",)
    assert call("read_file", path="f", offset=1, limit=2).notes == ()


def test_pages_that_are_not_there_are_errors(refusal, directory):
    """C099, C100, D16: beyond the end, before the beginning, or without lines."""
    make_files(directory, "f", text="0\n1\n")
    assert "offset 2 (offsets count from 0) is beyond the end: f has 2 lines" in refusal(
        "read_file", path="f", offset=2, limit=1
    )
    assert "-1 is negative" in refusal("read_file", path="f", offset=-1, limit=1)
    assert "at least 1 line" in refusal("read_file", path="f", limit=0)


def test_a_large_file_has_pages_that_name_the_next(run, directory):
    """C101, X4, X27: 1,000 lines and 25,000 bytes. Following the hints gives every line once."""
    lines = [f"line {number} {'x' * (number % 70)}\n" for number in range(3_000)]
    (directory / "f").write_text("".join(lines))
    got: list[str] = []
    more: dict[str, int] = {}
    while len(got) < len(lines):
        text = run("read_file", path="f", **more)
        head, _, body = text.partition("\n---\n")
        assert len(text) < 26_000
        got += (body or head).splitlines(keepends=True)
        if body:
            assert head.startswith(f"Showing lines {len(got) - len(body.splitlines()) + 1}-{len(got)} of 3000")
            words = head.rstrip(").").split()
            more = {"offset": int(words[words.index("offset") + 1]), "limit": int(words[-1])}
            assert more == {"offset": len(got), "limit": 1_000}
    assert got == lines


def test_one_line_without_end_is_cut(run, directory):
    """C101, D7: a line of a megabyte is cut, and the cut is reported."""
    (directory / "f").write_text("x" * 1_000_000 + "\nnext\n")
    text = run("read_file", path="f")
    assert len(text) < 3_000
    assert "line 1 was cut to 2000 characters" in text
    assert text.endswith("\nnext\n")


@pytest.mark.parametrize("kind", MEDIA)
def test_media_are_given_when_the_model_takes_them(directory, kind):
    """C097, C102: an image, PDF, audio or video file is part of the result."""
    (directory / "f").write_bytes(MEDIA[kind])
    with Workspace(directory, "proto", host=Host(media=frozenset({kind}))) as workspace:
        result = workspace.run("read_file", {"path": "f"})
    assert result.ok
    assert result.content.startswith("f: ")
    assert result.data["kind"] == kind
    assert result.data["mime"] in result.content
    assert base64.b64decode(result.data["data"]) == MEDIA[kind]


@pytest.mark.parametrize("kind", MEDIA)
def test_media_are_refused_when_the_model_does_not_take_them(directory, kind):
    """C102: the active model must support the modality. The message has the next step."""
    (directory / "f").write_bytes(MEDIA[kind])
    others = frozenset(MEDIA) - {kind}
    with Workspace(directory, "proto", host=Host(media=others)) as workspace:
        result = workspace.run("read_file", {"path": "f"})
    assert not result.ok
    assert "f is a" in result.content or "f is sound" in result.content
    assert result.data is None


# ---------------------------------------------------------------- write_file, edit


def test_an_edit_without_old_text_makes_the_file(run, refusal, directory):
    """X11, C106: as in the program, unless a file with content exists."""
    run("edit", file_path="d/new", old_string="", new_string="a\n")
    assert (directory / "d/new").read_text() == "a\n"
    assert "the file is not empty" in refusal("edit", file_path="d/new", old_string="", new_string="b\n")
    assert "does not exist" in refusal("edit", file_path="none", old_string="a", new_string="b")
    assert (directory / "d/new").read_text() == "a\n"
    assert not (directory / "none").exists()


def test_edits_are_understood_under_other_names(run, directory):
    """X14: common names of the old and new text, and former names of the tools."""
    (directory / "f").write_text("a\n")
    run("replace", path="f", old_text="a", new_text="b")
    run("str_replace", path="f", old_str="b", new_str="c")
    assert (directory / "f").read_text() == "c\n"


# --------------------------------------------------------------- glob, grep_search


def test_grep_search_takes_full_regular_expressions(run, directory):
    """C115, C116, X17: case matters as in ripgrep, unless the pattern sets a flag."""
    make_files(directory, "a.ts", text="one\nTwo 22\n  two\n")
    assert run("grep_search", pattern=r"^\s*t\w+$") == "a.ts:3:  two"
    assert run("grep_search", pattern=r"(?i)two") == "a.ts:2:Two 22\na.ts:3:  two"
    assert run("grep_search", pattern=r"(?P<d>\d)(?P=d)") == "a.ts:2:Two 22"
    assert run("grep_search", pattern="three") == "No matches for 'three'."


def test_grep_search_honors_path_glob_and_limit(run, refusal, directory):
    """C117, C118, C119, D12: a directory or a file, a filter, and the first lines with their total number."""
    make_files(directory, "a.ts", "d/b.ts", "d/c.md", text="x\nx\n")
    assert run("grep_search", pattern="x", path="d/c.md") == "d/c.md:1:x\nd/c.md:2:x"
    assert run("grep_search", pattern="x", path="d", glob="*.ts") == "d/b.ts:1:x\nd/b.ts:2:x"
    assert run("grep_search", pattern="x", glob="*.{md,rs}") == "d/c.md:1:x\nd/c.md:2:x"
    assert run("grep_search", pattern="x", limit=3) == (
        "a.ts:1:x\na.ts:2:x\nd/b.ts:1:x\n(6 matches in 3 files, the first 3 are shown; be more specific to see others)"
    )
    assert "-1 is negative" in refusal("grep_search", pattern="x", limit=-1)


# -------------------------------------------------------------------------- habits


def test_words_for_nothing_are_nothing(run, directory):
    """X33: null, and words for it where no text is expected."""
    make_files(directory, "f", text="0\n1\n")
    assert run("read_file", path="f", offset=None, limit="undefined") == "0\n1\n"
    assert run("list_directory", path=".", ignore=None, respect_git_ignore="null") == "./\nf"


def test_unknown_arguments_are_left_out_and_contradictions_refused(call, directory):
    """X34: unknown ones are dropped with a note. Two names with different values are an error."""
    make_files(directory, "f", text="0\n")
    result = call("read_file", path="f", encoding="utf-8")
    assert result.content == "0\n(note: read_file has no argument 'encoding'; it was ignored)"
    assert result.notes == ("read_file has no argument 'encoding'; it was ignored",)
    assert "mean the same but differ" in call("read_file", path="f", file_path="g").content


def test_errors_are_text_with_the_next_step(call, directory):
    """X28, X32: with the name of the tool and its parameters, as text instead of JSON."""
    result = call("read_file")
    assert result.content.startswith("tool_error: read_file: 'path' is missing (string)")
    assert "Its parameters: path, offset?: integer" in result.content
    assert result.data is None
