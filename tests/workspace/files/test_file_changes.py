"""Reading, writing and patching single files: all or nothing, byte for byte."""

import errno
import os
import stat
import subprocess
import sys
import textwrap
import threading
from typing import Any

import pytest

from adapter.core.errors import ToolError
from adapter.tools.operations import Patch as P
from adapter.tools.operations import PatchText, ReadText, WholeFileRewrite, WriteText
from adapter.workspace import Workspace
from adapter.workspace.changes import read_tracker
from adapter.workspace.changes.read_tracker import ReadTracker
from adapter.workspace.files import file_changes
from adapter.workspace.files.read_file import read_text
from adapter.workspace.paths.path_validation import build_temp_name


def leftovers(directory):
    return [path.name for path in directory.rglob("*") if path.name.startswith(".adapter-")]


# ------------------------------------------------------------------------- reading


def test_read_returns_text_unchanged(desk, directory):
    """Line ends and whitespace are unchanged; only a byte order mark is removed."""
    (directory / "f").write_bytes(b"\xef\xbb\xbfa \r\n\tb\rc")
    file: Any = read_text(desk, ReadText("f"))
    assert file.text == "a \r\n\tb\rc"
    assert (file.start_line, file.end_line, file.total_lines) == (1, 3, 3)


@pytest.mark.parametrize(
    ("start", "end", "context", "expected"),
    [
        (2, 3, 0, (2, 3)),
        (None, 2, 0, (1, 2)),
        (4, None, 0, (4, 5)),
        (3, 3, 1, (2, 4)),
        (2, 4, 9, (1, 5)),
        (2, 99, 0, (2, 5)),
    ],
)
def test_ranges_are_inclusive_and_widened_by_context(desk, directory, start, end, context, expected):
    """Lines count from 1, and the end is included."""
    (directory / "f").write_text("1\n2\n3\n4\n5\n")
    file: Any = read_text(desk, ReadText("f", start, end, context))
    assert (file.start_line, file.end_line) == expected
    assert file.text == "".join(f"{line}\n" for line in range(expected[0], expected[1] + 1))


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [(6, None, "beyond the end"), (0, None, "count from 1"), (-2, 3, "count from 1"), (3, 2, "before start_line")],
)
def test_invalid_range_error_names_line_count(desk, directory, start, end, said):
    """D16: a range beyond the end crashed."""
    (directory / "f").write_text("1\n2\n3\n4\n5\n")
    with pytest.raises(ToolError, match=said) as caught:
        read_text(desk, ReadText("f", start, end))
    assert "f has 5 lines" in str(caught.value)


def test_binary_files_are_refused_with_their_size(refusal, directory):
    """So that a model does not try again."""
    (directory / "f").write_bytes(b"\x7fELF\0\0\0")
    assert "binary file (7 bytes)" in refusal("read_file", path="f")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig", "utf-16-le"])
def test_marked_encodings_are_read_and_edited_in_place(run, directory, encoding):
    """A byte order mark decides. The file keeps its encoding and its mark."""
    text = "größer\r\nx\r\n"
    mark = "\ufeff" if encoding == "utf-16-le" else ""
    (directory / "f").write_bytes((mark + text).encode(encoding))
    assert run("read_file", path="f") == text
    run("apply_edit", path="f", old_text="x\n", new_text="ü\n")
    assert (directory / "f").read_bytes() == (mark + "größer\r\nü\r\n").encode(encoding)


def test_legacy_encodings_keep_every_other_byte(run, refusal, directory):
    """A single-byte encoding is guessed for reading. An edit keeps all other bytes, or is refused."""
    text = "Übergrößenträger für Äpfel und Öl, schöne Grüße aus Köln\n" * 20
    (directory / "f").write_bytes((text + "last\n").encode("cp1252"))
    assert "last" in run("read_file", path="f")
    run("apply_edit", path="f", old_text="last", new_text="end")
    assert (directory / "f").read_bytes() == (text + "end\n").encode("cp1252")
    assert "its bytes there are ambiguous" in refusal("apply_edit", path="f", old_text="end", new_text="日本")
    assert (directory / "f").read_bytes() == (text + "end\n").encode("cp1252")


def test_huge_files_are_refused_unread(refusal, directory):
    """A sparse file of 20 GB costs nothing."""
    with (directory / "f").open("wb") as file:
        file.truncate(20 * 1024**3)
    assert "read a range of its lines" in refusal("read_file", path="f")
    assert "files above 16 MiB cannot be edited" in refusal("edit_file", path="f", old_content="a", new_content="b")


# ------------------------------------------------------------------------- writing


def test_write_creates_parents_and_reports(run, directory):
    """C234 to C236, X29: create or overwrite, with the size."""
    assert run("write_file", path="a/b/f.txt", content="é\n") == "Created a/b/f.txt (3 bytes)."
    assert run("write_file", path="a/b/f.txt", content="") == "Overwrote a/b/f.txt (0 bytes)."
    assert (directory / "a/b/f.txt").read_bytes() == b""


@pytest.mark.parametrize(
    ("old", "written", "expected"),
    [
        (b"a\r\nb\r\n", "c\nd\n", b"c\r\nd\r\n"),
        (b"a\r\nb\n", "c\nd\n", b"c\nd\n"),
        (b"a\nb\n", "c\r\nd\r\n", b"c\r\nd\r\n"),
        (b"\xef\xbb\xbfa\n", "c\n", b"\xef\xbb\xbfc\n"),
        ("\ufeffä\r\n".encode("utf-16-le"), "日\n", "\ufeff日\r\n".encode("utf-16-le")),
        ("Grüße aus Köln\n".encode("cp1252"), "Köln grüßt\n", "Köln grüßt\n".encode("cp1252")),
        (b"\x7fELF\0\r\n", "c\n", b"c\n"),
        (b"", "c\n", b"c\n"),
    ],
)
def test_overwritten_file_keeps_its_encoding_and_line_endings(run, directory, old, written, expected):
    """As in proto CLI. A model sees neither, and writes UTF-8 and line feeds."""
    (directory / "f").write_bytes(old)
    assert "UTF-8" not in run("write_file", path="f", content=written)
    assert (directory / "f").read_bytes() == expected


def test_overwritten_file_becomes_utf8_if_its_encoding_is_only_guessed(run, directory):
    (directory / "f").write_bytes("Grüße aus Köln\n".encode("cp1252"))
    assert "f was not UTF-8 (cp1252?); it is UTF-8 now" in run("write_file", path="f", content="日本\n")
    assert (directory / "f").read_text("utf-8") == "日本\n"


def test_write_renames_and_keeps_mode(run, directory):
    """D19: the file is never half written, and stays executable."""
    path = directory / "f"
    path.write_text("old")
    path.chmod(0o754)
    inode = path.stat().st_ino
    run("write_file", path="f", content="new")
    assert path.stat().st_ino != inode
    assert stat.S_IMODE(path.stat().st_mode) == 0o754
    assert leftovers(directory) == []


def test_file_with_two_names_is_not_written(refusal, directory, tmp_path):
    """Neither name is changed, and nothing is left behind."""
    os.link(tmp_path / "secret" / "key", directory / "f")
    assert "has 2 names (hard links)" in refusal("write_file", path="f", content="changed")
    assert "has 2 names (hard links)" in refusal("apply_edit", path="f", old_text="hunter2", new_text="again")
    assert (directory / "f").samefile(tmp_path / "secret" / "key")
    assert (tmp_path / "secret" / "key").read_text() == "hunter2"
    assert leftovers(directory) == []


def test_crlf_bom_and_missing_final_newline_survive_an_edit(run, directory):
    """D4: bytes outside the edit are unchanged."""
    (directory / "f").write_bytes(b"\xef\xbb\xbfa\r\nb\r\nc")
    run("apply_edit", path="f", old_text="b\n", new_text="x\ny\n")
    assert (directory / "f").read_bytes() == b"\xef\xbb\xbfa\r\nx\r\ny\r\nc"


def test_failing_patch_keeps_the_file(refusal, directory):
    """C251: all patches or none."""
    (directory / "f").write_text("a\nb\n")
    before = (directory / "f").stat()
    refusal("apply_edit", path="f", patches=[{"old_text": "a", "new_text": "x"}, {"old_text": "q", "new_text": "y"}])
    after = (directory / "f").stat()
    assert (directory / "f").read_text() == "a\nb\n"
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_lone_surrogates_are_refused_before_writing(refusal, directory):
    """They exist in no encoding."""
    assert "U+D800 (character 2)" in refusal("write_file", path="f", content="a\ud800")
    assert not (directory / "f").exists()


def test_read_only_files_and_directories_are_refused(refusal, directory):
    """By their mode bits, also for root."""
    (directory / "f").write_text("x")
    (directory / "f").chmod(0o444)
    assert "read-only" in refusal("write_file", path="f", content="y")
    assert "read-only" in refusal("edit_file", path="f", old_content="x", new_content="y")
    (directory / "d").mkdir()
    (directory / "d" / "f").write_text("x")
    (directory / "d").chmod(0o555)
    try:
        for name, arguments in [
            ("write_file", {"path": "d/f", "content": "y"}),
            ("write_file", {"path": "d/new", "content": "y"}),
            ("delete_file", {"path": "d/f"}),
            ("move_file", {"source": "d/f", "destination": "g"}),
            ("copy_file", {"source": "f", "destination": "d/g"}),
        ]:
            assert "read-only" in refusal(name, **arguments)
    finally:
        (directory / "d").chmod(0o755)
    assert (directory / "d" / "f").read_text() == "x"


def test_read_only_workspace_is_never_changed(run, refusal, directory):
    """With a message. Reading works."""
    (directory / "f").write_text("x")
    directory.chmod(0o555)
    try:
        for name, arguments in [
            ("write_file", {"path": "f", "content": "y"}),
            ("write_file", {"path": "new/g", "content": "y"}),
            ("edit_file", {"path": "f", "old_content": "x", "new_content": "y"}),
            ("create_directory", {"path": "d/e"}),
            ("delete_file", {"path": "f"}),
            ("move_file", {"source": "f", "destination": "g"}),
            ("copy_file", {"source": "f", "destination": "d/g"}),
        ]:
            assert "directory is read-only" in refusal(name, **arguments)
        assert run("read_file", path="f") == "x"
        assert [path.name for path in directory.iterdir()] == ["f"]
    finally:
        directory.chmod(0o755)


def test_full_disk_keeps_old_file_with_advice(directory):
    """A kernel limit of 1 KB per file imitates the full disk."""
    (directory / "notes.txt").write_text("old")
    script = """
        import resource, signal, sys
        from adapter.workspace import Workspace
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
        with Workspace(sys.argv[1], approve="yolo") as workspace:
            print(workspace.run("write_file", {"path": "notes.txt", "content": "x" * 5000}).content)
            print(workspace.run("write_file", {"path": "new/deep.txt", "content": "x" * 5000}).content)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), directory], capture_output=True, text=True, check=True
    )
    assert "tool_error: " in done.stdout
    assert "notes.txt was not changed" in done.stdout
    assert "Write less" in done.stdout
    assert (directory / "notes.txt").read_text() == "old"
    assert sorted(path.name for path in directory.iterdir()) == ["notes.txt"]


FAULTS = [
    (errno.ENOSPC, "No space left on device: notes.txt was not changed. Free some space, then try again."),
    (errno.EDQUOT, "The disk quota is used up: notes.txt was not changed."),
    (errno.EROFS, "The file system is read-only: notes.txt was not changed."),
    (errno.EIO, "The disk reported an input/output error: notes.txt was not changed."),
]


@pytest.mark.parametrize(("number", "said"), FAULTS)
@pytest.mark.parametrize("call", ["open", "write", "fchmod", "fsync", "rename"])
def test_failing_system_call_keeps_old_file(refusal, directory, monkeypatch, call, number, said):
    """The n-th system call fails, for each call of a write: old content, no temporary file, a clear message."""
    (directory / "notes.txt").write_text("old")
    real = getattr(os, call)

    def failing(*arguments, **keywords):
        if call == "open" and not arguments[1] & os.O_CREAT:
            return real(*arguments, **keywords)
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing)
        if call == "rename":
            patch.setattr(os, "replace", failing)
        message = refusal("write_file", path="notes.txt", content="new")
    assert said in message
    assert (directory / "notes.txt").read_text() == "old"
    assert leftovers(directory) == []


def test_leftover_temporary_file_is_replaced(run, directory):
    """A killed process leaves at most one per file."""
    (directory / build_temp_name("f", "new")).write_text("half")
    run("write_file", path="f", content="whole")
    assert leftovers(directory) == []


# ------------------------------------------------------------------ plan and commit


def test_whole_file_keeps_changes_made_since_it_was_read(desk, directory):
    """The model changes one line of the version that it read; another program has changed another line."""
    (directory / "f").write_text("one\ntwo\nthree\nfour\n")
    read_text(desk, ReadText("f"))
    (directory / "f").write_text("ONE\ntwo\nthree\nfour\n")
    whole = WholeFileRewrite("", "one\ntwo\nthree\nFOUR\n")
    file_changes.plan_patch(desk, PatchText("f", (whole,))).commit(desk)
    assert (directory / "f").read_text() == "ONE\ntwo\nthree\nFOUR\n"


def test_remembered_versions_are_counted_and_forgotten(monkeypatch):
    """A patched file has two versions: the one that was read, and the current one."""
    tracker = ReadTracker()
    tracker.note(("f",), b"read")
    tracker.note(("f",), b"patched", is_patched=True)
    tracker.note(("f",), b"again!!", is_patched=True)
    assert tracker.list_earlier_versions(("f",), b"again!!") == [b"read"]
    assert tracker.list_earlier_versions(("f",), b"other") == [b"again!!", b"read"]
    monkeypatch.setattr(read_tracker, "MAX_SEEN_BYTES", 12)
    tracker.note(("g",), b"12345")
    assert tracker.list_earlier_versions(("f",), b"other") == []
    assert "has 5 bytes" in tracker.describe_change(("f",), b"other")
    tracker.forget(("g",))
    assert tracker._bytes == 0


def test_plan_changes_nothing_and_commit_applies_its_diff(desk, directory):
    """The approved diff is what is written."""
    (directory / "f").write_text("a\n")
    change = file_changes.plan_patch(desk, PatchText("f", (P("a", "b"),)))
    assert (directory / "f").read_text() == "a\n"
    assert "-a\n+b\n" in change.diff
    change.commit(desk)
    assert (directory / "f").read_text() == "b\n"


def test_planning_new_file_creates_no_directories(desk, directory):
    """A refused write leaves no trace."""
    file_changes.plan_write(desk, WriteText("a/b/c", "x"))
    assert not list(directory.iterdir())


def test_file_changed_since_plan_is_not_written(desk, directory):
    """It would no longer be the approved diff."""
    (directory / "f").write_text("a\n")
    change = file_changes.plan_write(desk, WriteText("f", "b\n"))
    (directory / "f").write_text("other\n")
    with pytest.raises(ToolError, match="another program has just changed"):
        change.commit(desk)
    assert (directory / "f").read_text() == "other\n"


def test_parallel_edits_are_all_applied(directory):
    """Eight threads increment a number in one file, and each success counts."""
    (directory / "f").write_text("0\n")
    successes = []

    def work():
        with Workspace(directory, approve="yolo") as workspace:
            for _ in range(20):
                number = int(workspace.run("read_file", {"path": "f"}).content)
                edit = {"path": "f", "old_text": f"{number}\n", "new_text": f"{number + 1}\n"}
                if workspace.run("apply_edit", edit).ok:
                    successes.append(number)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert int((directory / "f").read_text()) == len(successes)
    assert len(set(successes)) == len(successes)


def test_guessed_encoding_must_preserve_ascii(directory, workspace):
    """In EBCDIC the byte 0x81 is an `a`, so the edit could match where the text has none."""
    (directory / "f").write_bytes(b"a\x0bb\x80\x81")
    workspace.run("apply_edit", {"path": "f", "old_text": "a", "new_text": "A"})
    assert (directory / "f").read_bytes() in (b"A\x0bb\x80\x81", b"a\x0bb\x80\x81")


def test_match_in_bytes_overrides_guessed_text(directory, refusal):
    """In cp932 the last two bytes before `n y` are one character, and the text would occur in only one place."""
    before = b"\tz = 1 #0;\r    return y #1\r\n    retu\x80\x81rn y #2  \r"
    (directory / "f").write_bytes(before)
    assert "give longer old texts" in refusal("apply_edit", path="f", old_text="rn y", new_text="new")
    assert (directory / "f").read_bytes() == before


@pytest.mark.parametrize(
    "data", [b"caf\xe9 \xfe\nlast\n", b"one\xff\nlast\n", b"\x80\x81\n last\n\xc3", "∵\nlast\n".encode("cp932")]
)
def test_file_of_unknown_encoding_can_be_edited(data, directory, run):
    """With ASCII text. All other bytes stay, whatever they mean."""
    (directory / "f").write_bytes(data)
    assert "last" in run("read_file", path="f")
    run("apply_edit", path="f", old_text="last", new_text="end")
    assert (directory / "f").read_bytes() == data.replace(b"last", b"end")


CODE = "import os\n\n\ndef a():\n    return 1\n\n\ndef b():\n    return 2\n"


@pytest.mark.parametrize(
    "marker", ["# ... existing code ...", "# rest of the file unchanged", "// ...", "# Rest bleibt gleich"]
)
def test_file_is_not_overwritten_by_a_part_of_it(desk, directory, marker):
    (directory / "a.py").write_text(CODE)
    with pytest.raises(ToolError, match="was not overwritten, because the content has"):
        file_changes.plan_write(desk, WriteText("a.py", f"import os\n\n\ndef a():\n    return 10\n\n\n{marker}\n"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (CODE, CODE + "# ... existing code ...\n"),
        (CODE + "# ... existing code ...\n", "# ... existing code ...\n"),
        (CODE, "import os\n\n\nclass A(Protocol):\n    def a(self): ...\n"),
        ("", "# ... existing code ...\n"),
    ],
)
def test_file_is_overwritten_if_no_line_is_lost_to_an_omission(desk, directory, old, new):
    (directory / "a.py").write_text(old)
    assert file_changes.plan_write(desk, WriteText("a.py", new)).files[0][1] == new.encode()
