"""Path resolution: no tool reaches anything outside the root, in any spelling."""

import os
import socket
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.errors import ToolError, UsageError
from adapter.tools.operations.permissions import PermissionRule
from adapter.workspace import Workspace
from adapter.workspace.paths import openat2, path_validation
from adapter.workspace.paths.resolver import WorkspaceRoot
from tests.approvals import record_requests
from tests.effort import examples
from tests.workspace.conditions import needs_descriptors

OUTSIDE = [
    "../secret/key",
    "sub/../../secret/key",
    "./../secret/key",
    "{tmp}/secret/key",
    "{tmp}/ws-evil/file",
    "{tmp}/ws/../secret/key",
    "../ws-evil/file",
    "/etc/passwd",
    "/",
    "//etc/passwd",
    "~/x",
    "~",
    "out/key",
    "out-absolute/key",
    "out-file",
    "up/secret/key",
    "chain/key",
]

CALLS = {
    "read_file": lambda path: {"path": path},
    "read_file_range": lambda path: {"path": path},
    "write_file": lambda path: {"path": path, "content": "x"},
    "edit_file": lambda path: {"path": path, "old_content": "hunter2", "new_content": "x"},
    "apply_edit": lambda path: {"path": path, "old_text": "hunter2", "new_text": "x"},
    "delete_file": lambda path: {"path": f"{path}/x" if path in ("out-file", "~") else path, "recursive": True},
    "get_file_info": lambda path: {"path": path},
    "create_directory": lambda path: {"path": f"{path}/new"},
    "list_directory": lambda path: {"path": path},
    "get_workspace_structure": lambda path: {"path": path},
    "find_files": lambda path: {"pattern": "e", "path": path},
    "find_files_glob": lambda path: {"pattern": "*", "path": path},
    "grep_search": lambda path: {"pattern": "hunter", "path": path},
    "run_command": lambda path: {"command": "ls", "cwd": path},
    "move_file from": lambda path: {"source": f"{path}/x" if path == "out-file" else path, "destination": "moved"},
    "move_file to": lambda path: {"source": "a.txt", "destination": f"{path}/x"},
    "copy_file from": lambda path: {"source": path, "destination": "copied"},
    "copy_file to": lambda path: {"source": "a.txt", "destination": f"{path}/x"},
}


@pytest.fixture
def trap(directory, tmp_path):
    """Links of every kind that lead out of the workspace."""
    (directory / "a.txt").write_text("a")
    (directory / "sub").mkdir()
    (directory / "out").symlink_to("../secret")
    (directory / "out-absolute").symlink_to(tmp_path / "secret")
    (directory / "out-file").symlink_to("../secret/key")
    (directory / "up").symlink_to("..")
    (directory / "chain").symlink_to("sub/link")
    (directory / "sub" / "link").symlink_to("../../secret")


def _snapshot(top):
    return sorted((str(path), path.read_bytes() if path.is_file() else b"") for path in top.rglob("*"))


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.usefixtures("trap")
def test_tools_cannot_reach_outside_root(workspace, tmp_path, call, path):
    """C222, D10: and the files outside are unchanged."""
    before = _snapshot(tmp_path)
    arguments = CALLS[call](path.format(tmp=tmp_path))
    result = workspace.run(call.split()[0], arguments)
    assert not result.ok
    assert "outside the workspace" in result.content
    assert "hunter2" not in result.content
    assert _snapshot(tmp_path) == before


@pytest.mark.parametrize("path", ["a.txt", "./a.txt", "sub/../a.txt", "{ws}/a.txt", "a.txt/", "in/a.txt"])
def test_all_spellings_of_inside_paths_work(run, directory, path):
    """C222, X2: absolute paths and links included."""
    (directory / "a.txt").write_text("here")
    (directory / "sub").mkdir()
    (directory / "in").symlink_to(directory)
    assert run("read_file", path=path.format(ws=directory)) == "here"


def test_links_inside_are_followed_both_ways(run, directory):
    (directory / "deep" / "er").mkdir(parents=True)
    (directory / "deep" / "er" / "f").write_text("x")
    (directory / "link").symlink_to("deep/er/../er")
    assert run("read_file", path="link/f") == "x"
    run("write_file", path="link/f", content="y")
    assert (directory / "deep" / "er" / "f").read_text() == "y"


def test_workspace_behind_link_accepts_both_spellings(directory, tmp_path):
    """On macOS: /tmp and /private/tmp."""
    (directory / "f").write_text("x")
    (tmp_path / "alias").symlink_to(directory)
    with Workspace(tmp_path / "alias") as workspace:
        for top in ("alias", "ws"):
            assert workspace.run("read_file", {"path": str(tmp_path / top / "f")}).ok


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("", "empty"),
        ("a\0b", "NUL"),
        ("x/" * 3000, "the path has 6000 bytes"),
        ("n" * 300, "a name in the path has 300 bytes"),
        ("a\ud800", "not valid text"),
        ("/".join(["d"] * 150), "does not exist"),
    ],
)
def test_impossible_paths_are_explained(refusal, path, said):
    """Before the file system is accessed."""
    assert said in refusal("read_file", path=path)


def test_very_deep_paths_hold_a_bounded_number_of_descriptors(run, refusal):
    """A path of 150 directories is refused, and the directories created for it are removed."""
    assert "directories deep" in refusal("write_file", path="d/" * 150 + "f", content="x")
    assert run("list_directory") == "./ (empty)"


def test_link_loops_end(refusal, directory):
    (directory / "a").symlink_to("b")
    (directory / "b").symlink_to("a")
    assert "loop" in refusal("read_file", path="a/x")


def test_dangling_links_do_not_exist(refusal, directory):
    (directory / "a").symlink_to("nothing")
    assert "does not exist" in refusal("read_file", path="a")


def test_special_files_are_not_opened(refusal, directory, monkeypatch):
    """A FIFO would block forever, and a socket is not text."""
    os.mkfifo(directory / "fifo")
    monkeypatch.chdir(directory)  # the path of a socket may have only a hundred bytes
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        for name in ("fifo", "socket"):
            assert "not a regular file" in refusal("read_file", path=name)
            assert "not a regular file" in refusal("write_file", path=name, content="x")
        assert "outside" in refusal("read_file", path="/dev/zero")


GIT = [
    ".git/config",
    ".GIT/config",
    ".git./config",
    ".git /config",
    "git~1/config",
    ".g\u200cit/config",
    ".git::$DATA/x",
    ".git::$INDEX_ALLOCATION/x",
    ".git:config",
    "GIT~1/config",
    "git~12",
    ".Git. . /config",
    ".gi\u206ft/config",
    "\ufeff.git/config",
    "．git/config",
    "sub/.git/hooks/pre-commit",
]


@pytest.mark.parametrize("path", GIT)
def test_git_data_is_never_written(refusal, directory, path):
    """Every spelling that some file system takes for .git (git CVE-2014-9390 and later)."""
    assert "git's own data" in refusal("write_file", path=path, content="x")
    assert "git's own data" in refusal("create_directory", path=path)
    assert not list(directory.iterdir())


def test_git_data_is_read_only(run, refusal, directory):
    """Also as a part of a tree."""
    (directory / "repo" / ".git").mkdir(parents=True)
    (directory / "repo" / ".git" / "HEAD").write_text("ref")
    (directory / "f").write_text("x")
    (directory / "link").symlink_to("repo/.git")
    assert run("read_file", path="repo/.git/HEAD") == "ref"
    calls: list[tuple[str, dict[str, object]]] = [
        ("delete_file", {"path": "repo/.git", "recursive": True}),
        ("delete_file", {"path": "repo", "recursive": True}),
        ("move_file", {"source": "repo/.git", "destination": "x"}),
        ("move_file", {"source": "f", "destination": "repo/.git/hooks"}),
        ("copy_file", {"source": "f", "destination": "repo/.git/hooks"}),
        ("copy_file", {"source": "repo", "destination": "other"}),
        ("write_file", {"path": "link/HEAD", "content": "x"}),
    ]
    for name, arguments in calls:
        assert "git's own data" in refusal(name, **arguments)
    assert run("read_file", path="repo/.git/HEAD") == "ref"


@pytest.mark.parametrize("path", [".", "./", "sub/..", "{ws}", "{ws}/", "in"])
def test_root_cannot_be_changed(refusal, directory, path):
    """Deleting and moving are refused in every spelling."""
    (directory / "sub").mkdir()
    (directory / "in").symlink_to("sub/..")
    path = path.format(ws=directory)
    if path != "in":
        assert "workspace root" in refusal("delete_file", path=path, recursive=True)
        assert "workspace root" in refusal("move_file", source=path, destination="x")
    assert refusal("write_file", path=path, content="x")
    assert directory.is_dir()


def test_names_with_backslash_or_control_characters_are_refused(refusal):
    r"""Windows paths get a hint; otherwise they would create a file called src\main.rs."""
    assert "separate directories with '/'" in refusal("write_file", path="src\\main.rs", content="")
    assert "control characters" in refusal("write_file", path="a\nb", content="")


@pytest.mark.parametrize(
    "name",
    [
        "con",
        "NUL.txt",
        "aux.c",
        "Com1",
        "lpt9.log",
        "COM¹",
        "CONIN$",
        "a:b",
        "C:",
        "what?",
        "a*b",
        "<a>",
        'q"',
        "a|b",
        "a.",
        "a ",
    ],
)
def test_names_invalid_on_windows_are_refused(refusal, run, directory, name):
    """They could not be checked out there. Existing ones stay usable."""
    assert "Windows" in refusal("write_file", path=f"new/{name}", content="x")
    assert "Windows" in refusal("create_directory", path=name)
    assert list(directory.iterdir()) == []
    (directory / name).write_text("old")
    run("write_file", path=name, content="new")
    assert run("read_file", path=name) == "new"


@pytest.mark.parametrize(
    "name", ["console", "com", "com10", "auxiliary.c", "nul-check", ".a", "a..b", "[id].tsx", "$x", "ü"]
)
def test_ordinary_names_are_accepted(run, name):
    """They only resemble invalid ones."""
    run("write_file", path=name, content="x")


@pytest.mark.skipif(not hasattr(os, "mknod") or os.getuid() != 0, reason="only root makes devices")
def test_devices_in_the_workspace_are_not_opened(refusal, directory):
    """/dev/zero under another name is endless."""
    os.mknod(directory / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    assert "not a regular file" in refusal("read_file", path="zero")
    assert "not a regular file" in refusal("write_file", path="zero", content="x")


def test_magic_links_are_refused(refusal, directory):
    """/proc's links lead to open files and folders of processes."""
    for number, target in enumerate(
        ["/proc/self/root/etc/passwd", "/proc/self/cwd", "/dev/fd/0", f"/proc/{os.getpid()}/fd"]
    ):
        (directory / f"link{number}").symlink_to(target)
        assert "outside" in refusal("read_file", path=f"link{number}/x")


GUARDED = [
    *(".vscode/tasks.json", "sub/.VSCODE/settings.json", ".idea/workspace.xml", ".mcp.json", ".envrc", "a/.envrc"),
    *(".bashrc", ".github/workflows/ci.yml", ".husky/pre-commit", "tools.json", "link/tasks.json"),
]


@pytest.mark.parametrize("path", GUARDED)
def test_autorun_files_need_approval(directory, path):
    """Also if edits are allowed, unless a rule allows them."""
    (directory / ".vscode").mkdir()
    (directory / "link").symlink_to(".vscode")
    asked, refuse = record_requests("summary", answer=False)
    arguments = {"path": path, "content": "x"}
    with Workspace(directory, approve="auto-edit", ask=refuse) as workspace:
        assert workspace.run("write_file", {"path": "plain.txt", "content": "x"}).ok
        assert not asked
        result = workspace.run("write_file", arguments)
        assert "did not approve" in (result.error or "")
        assert len(asked) == 1
    rule = (
        PermissionRule.parse("allow", f"write_file({path})")
        if "link" not in path
        else PermissionRule.parse("allow", "write_file")
    )
    with Workspace(directory, approve="auto-edit", rules=[rule]) as workspace:
        assert workspace.run("write_file", arguments).ok


NAMES = st.sampled_from(
    ["a", "b", "c", ".git", "up", "in", "out", "loop", "f", "nope", "..", ".", "", ".adapter-0123456789abcdef.new"]
)


@needs_descriptors
@given(st.lists(NAMES, max_size=7), st.booleans(), st.booleans(), st.sampled_from(["exist", "assume"]))
@examples(400)
def test_openat2_and_walk_agree(maze, names, follow, write, parents):
    """The same path, or the same refusal in the same words."""

    def found():
        try:
            with maze.locate("/".join(names), follow=follow, write=write, parents=parents) as place:
                inode = place.status.st_ino if place.status else None
                return place.parts, place.name, inode, os.fstat(place.dirfd).st_ino if place.dirfd >= 0 else -1
        except ToolError as error:
            return str(error)

    quick = found()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("adapter.workspace.paths.descriptor_syscalls.open_beneath", lambda *_: None)
        assert found() == quick


@pytest.fixture(scope="module")
def maze(tmp_path_factory):
    """Folders with links in, out, up and in circles."""
    top = tmp_path_factory.mktemp("maze")
    for folder in ("a/b/c", "b/c", ".git/a"):
        (top / folder).mkdir(parents=True)
    for place in ("", "a", "a/b", "b"):
        for name, target in (("up", ".."), ("in", "/".join([str(top), "a/b"])), ("out", "/etc"), ("loop", "loop")):
            (top / place / name).symlink_to(target)
        (top / place / "f").write_text("x")
    with WorkspaceRoot(top) as root:
        yield root


@needs_descriptors
@pytest.mark.skipif(not openat2.is_available(), reason="needs Linux 5.6, and to be allowed openat2")
def test_openat2_is_used_if_possible(directory, root, monkeypatch):
    """Otherwise the test above would compare the walk with itself."""
    (directory / "a" / "b").mkdir(parents=True)
    (directory / "a" / "up").symlink_to("..")
    (directory / "a" / "b" / "f").write_text("x")
    given: list[int | None] = []

    def open_beneath(*args):
        given.append(openat2.open_beneath(*args))
        return given[-1]

    monkeypatch.setattr("adapter.workspace.paths.descriptor_syscalls.open_beneath", open_beneath)
    for path in ("a/b/f", "a/up/a/b/f"):
        with root.open_file(path):
            pass
    assert [descriptor is None for descriptor in given] == [False, True]
    for path in ("a/../a", "..", "/etc", "a/up", "f", "a/b/f/x"):
        assert openat2.open_beneath(root.descriptor, path, os.O_RDONLY | os.O_DIRECTORY) is None or path == "a/../a"


def test_resolver_works_without_openat2(directory, root, monkeypatch):
    """As in containers that answer ENOSYS or EPERM."""
    monkeypatch.setattr(openat2, "is_available", lambda: False)
    (directory / "a" / "b").mkdir(parents=True)
    (directory / "a" / "b" / "f").write_text("x")
    with root.open_file("a/b/f") as (descriptor, place):
        assert os.read(descriptor, 9) == b"x"
        assert place.parts == ("a", "b", "f")


def test_missing_file_error_names_nearest(refusal, directory):
    (directory / "main.py").write_text("")
    assert "did you mean 'main.py'?" in refusal("read_file", path="mian.py")


def test_missing_file_error_names_the_same_name_in_a_directory_below(refusal, directory):
    (directory / "a" / "b").mkdir(parents=True)
    (directory / "a" / "b" / "notes.txt").write_text("")
    (directory / "note.txt").write_text("")
    (directory / ".hidden").mkdir()
    (directory / ".hidden" / "x.ini").write_text("")
    assert "did you mean 'a/b/notes.txt'?" in refusal("delete_file", path="notes.txt")
    assert "did you mean 'a/b/notes.txt'?" in refusal("read_file", path="a/notes.txt")
    assert "did you mean" not in refusal("read_file", path="x.ini")


def test_search_for_the_same_name_is_limited(refusal, directory, monkeypatch):
    monkeypatch.setattr(path_validation, "MAX_DIRECTORIES", 2)
    for name in ("a", "b", "c"):
        (directory / name).mkdir()
    (directory / "c" / "notes.txt").write_text("")
    assert "did you mean" not in refusal("read_file", path="notes.txt")
    monkeypatch.setattr(path_validation, "MAX_DIRECTORIES", 3)
    assert "did you mean 'c/notes.txt'?" in refusal("read_file", path="notes.txt")


@pytest.mark.parametrize("pattern", ["*.tmp", ".*\\.tmp", "?.t*"])
def test_error_about_a_pattern_names_the_files_that_match(pattern, refusal, directory):
    for name in ("a.tmp", "b.tmp", "c.md"):
        (directory / name).write_text("")
    assert "not expanded here; call this for each of 'a.tmp', 'b.tmp'" in refusal("delete_file", path=pattern)


def test_error_about_a_pattern_counts_the_files_that_it_does_not_name(refusal, directory):
    for number in range(12):
        (directory / f"{number:02}.tmp").write_text("")
    assert "'09.tmp' and 2 more" in refusal("delete_file", path="*.tmp")


def test_replaced_workspace_is_detected(directory, root):
    """The path now names another directory."""
    directory.rename(directory.parent / "old")
    directory.mkdir()
    with pytest.raises(ToolError, match="moved, replaced or closed"), root.locate("x"):
        pass


def test_missing_workspace_is_a_usage_error(tmp_path):
    """The developer, not the model, chose it."""
    with pytest.raises(UsageError, match="nowhere"):
        WorkspaceRoot(tmp_path / "nowhere")


def open_descriptors():
    """Return the number of open descriptors, if the system reports it."""
    listed = Path("/proc/self/fd")
    return len(list(listed.iterdir())) if listed.is_dir() else 0


def test_descriptors_do_not_leak(workspace, directory):
    """After hundreds of calls, including failing ones."""
    (directory / "a" / "b").mkdir(parents=True)
    (directory / "a" / "b" / "f").write_text("x")
    (directory / "loop").symlink_to("loop")

    def calls():
        for path in ("a/b/f", "a/nope/f", "loop/x", "a", "../x", ""):
            for call, arguments in CALLS.items():
                if call.split()[0] not in ("run_command", "move_file", "delete_file"):
                    workspace.run(call.split()[0], arguments(path))

    calls()
    before = open_descriptors()
    calls()
    assert open_descriptors() == before


def test_directory_swapped_for_link_never_leaks(root, directory, tmp_path):
    """The walk opens what it checked, so a race cannot be won."""
    (directory / "d").mkdir()
    (directory / "d" / "key").write_text("mine")
    (directory / "l").symlink_to(tmp_path / "secret")
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            (directory / "d").rename(directory / "t")
            (directory / "l").rename(directory / "d")
            (directory / "d").rename(directory / "l")
            (directory / "t").rename(directory / "d")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(1_500):
            try:
                with root.open_file("d/key") as (descriptor, _):
                    assert os.read(descriptor, 10) == b"mine"
            except (ToolError, OSError):
                continue
    finally:
        stop.set()
        thread.join()
