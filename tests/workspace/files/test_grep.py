"""Listings and searches are complete, ordered and limited, without ignored files."""

import os
import sys
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from adapter.core.errors import ToolError
from adapter.core.text.lines import split_line_texts
from adapter.core.text.safe_regex import compile_pattern, find_required_texts
from adapter.tools.operations import FindByName, Glob, Grep, Tree
from adapter.workspace.files import grep as search
from adapter.workspace.files.grep import grep
from adapter.workspace.files.listing import find_by_glob, find_by_name, list_tree
from adapter.workspace.paths.gitignore import parse_ignore_file
from adapter.workspace.paths.walk import Walk, WalkLimits
from tests.effort import examples


@pytest.fixture
def project(directory, tmp_path):
    for path, text in {
        "README.md": "hello\n",
        "src/main.rs": "fn main() {\n    hello();\n}\n",
        "src/deep/er/Lib.RS": "pub fn hello() {}\n",
        "node_modules/x/index.js": "hello\n",
        "target/debug/out.rs": "hello\n",
        "sub/target/out.rs": "hello\n",
        "logs/today.log": "hello\n",
        "logs/keep.log": "hello\n",
        "logs/.gitignore": "!keep.log\n",
        ".gitignore": "*.log\n[z-a]\n!\n/only-root\n",
        "only-root/f": "hello\n",
        "src/only-root/f": "hello\n",
        ".hidden/f": "hello\n",
        ".git/config": "hello\n",
    }.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
    (directory / "src" / "binary").write_bytes(b"hello\0")
    (directory / "link").symlink_to(tmp_path / "secret")
    return directory


def walked(root, **options):
    return [node.path for node in Walk(root, ".", **options)]


# ---------------------------------------------------------------------------- walk


@pytest.mark.usefixtures("project")
def test_walks_are_sorted_and_parents_come_first(root):
    """The order does not depend on the file system."""
    paths = walked(root)
    assert paths == sorted(paths, key=lambda path: path.split("/"))
    assert "link" in paths
    assert not any(path.startswith("link/") for path in paths)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(("limits", "said"), [(WalkLimits(entries=3), "3 entries"), (WalkLimits(seconds=-1.0), "-1 s")])
def test_walk_limits_are_noted(root, limits, said):
    """A huge tree costs a bounded amount of work."""
    walk = Walk(root, ".", limits=limits)
    assert len(list(walk)) <= 3
    assert said in walk.notes[0]


def test_depth_limit_is_named(root, directory):
    """Sixty-four levels. Deeper ones are reported as missing."""
    (directory / "/".join("d" * 5)).mkdir(parents=True)
    walk = Walk(root, ".", limits=WalkLimits(depth=3))
    assert len(list(walk)) == 3
    assert "3 levels" in walk.notes[0]


@pytest.mark.skipif(sys.platform == "win32", reason="names are text on Windows")
def test_undecodable_names_are_escaped(root, directory):
    """A raw byte or an escape sequence in a name must not reach the conversation."""
    os.mkdir(os.path.join(os.fsencode(directory), b"a\xff\x1b[0m"))  # noqa: PTH102, PTH118 - a name in bytes
    assert [entry.path for entry in list_tree(root, Tree()).entries] == ["a\\xff\\x1b[0m"]


# ------------------------------------------------------------------------ listings


@pytest.mark.usefixtures("project")
def test_structure_skips_common_directories_and_ignored_files(root):
    """C274: node_modules, target and .git at any depth; *.log, except what a nested file keeps."""
    paths = {entry.path for entry in list_tree(root, Tree(depth=9, skip_common=True, gitignore=True)).entries}
    assert paths.isdisjoint({"node_modules", "target", ".git", "sub/target", "logs/today.log", "only-root"})
    assert {"logs/keep.log", "src/only-root/f", ".hidden/f", "sub"} <= paths


@pytest.mark.usefixtures("project")
def test_ignore_files_above_start_apply(root):
    """A search that starts in a subdirectory respects the root's ignore file."""
    assert [hit.path for hit in grep(root, Grep("hello", "logs")).hits] == ["logs/keep.log"]


# ------------------------------------------------------------------------ by name


@pytest.mark.usefixtures("project")
def test_find_by_name_matches_substring(root):
    """Also of directories, in any case, below the path, down to the depth."""
    assert find_by_name(root, FindByName("LIB")).paths == ("src/deep/er/Lib.RS",)
    assert find_by_name(root, FindByName("er")).paths == ("src/deep/er",)
    assert find_by_name(root, FindByName("*.RS")).paths == ("src/deep/er/Lib.RS", "src/main.rs")
    assert find_by_name(root, FindByName("er/*.rs", "src")).paths == ("src/deep/er/Lib.RS",)
    assert find_by_name(root, FindByName("m?in*")).paths == ("src/main.rs",)
    assert find_by_name(root, FindByName("main", "src/deep")).paths == ()
    assert find_by_name(root, FindByName("main", max_depth=1)).paths == ()
    assert find_by_name(root, FindByName("main", max_depth=2)).paths == ("src/main.rs",)
    cut = find_by_name(root, FindByName("f", limit=1))
    assert (len(cut.paths), cut.truncated) == (1, True)


@pytest.mark.usefixtures("project")
def test_glob_searches_named_build_directory(root):
    """They are skipped by default."""
    assert find_by_glob(root, Glob("target/**/*.rs")).paths == ("target/debug/out.rs",)


# ---------------------------------------------------------------------------- grep


@pytest.mark.usefixtures("project")
def test_grep_returns_path_line_and_text(root):
    """In the order of the paths, without binary, ignored and build files."""
    found = grep(root, Grep("hello"))
    assert [(hit.path, hit.line) for hit in found.hits] == [
        (".hidden/f", 1),
        ("README.md", 1),
        ("logs/keep.log", 1),
        ("src/deep/er/Lib.RS", 1),
        ("src/main.rs", 2),
        ("src/only-root/f", 1),
    ]
    assert found.hits[4].text == "    hello();"


def test_grep_of_binary_file_is_noted(project, root):
    """The empty result has a note. Text with many NULs, in UTF-16, is searched."""
    assert grep(root, Grep("hello", "src/binary")).notes == ("src/binary was not searched: it is binary",)
    (project / "wide").write_text("other", encoding="utf-16")
    assert grep(root, Grep("hello", "wide")).notes == ()


def test_pattern_cannot_span_lines(root, directory):
    r"""Anchors apply to the line, and \s does not match line ends."""
    (directory / "f").write_bytes(b"one\r\ntwo\rthree\n")
    assert [hit.line for hit in grep(root, Grep("^t.*o$|^one$")).hits] == [1, 2]
    assert grep(root, Grep("one\\s+two")).hits == ()


def test_matching_lines_are_shortened_and_escaped(root, directory):
    """A minified file must not fill the result, and an escape sequence must not reach a terminal."""
    (directory / "f").write_text("x\x1b[31m" + "y" * 10_000 + "\n")
    text = grep(root, Grep("y")).hits[0].text
    assert len(text) < 600
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("a(", r"missing \).*position 3.*literal text, use a\\\("),
        ("[z-a]", "bad character range"),
        ("", "empty"),
        ("a" * 1001, "1001"),
        ("((a{1000}){1000}){10}", "smaller counts"),
        ("((a{9}){9}){9}{99}", "smaller counts"),
    ],
)
def test_invalid_pattern_error_has_position_and_advice(pattern, said):
    """Compiling has no timeout, so huge repeats are refused before."""
    start = time.thread_time()
    with pytest.raises(ToolError, match=said):
        compile_pattern(pattern)
    assert time.thread_time() - start < 5


def test_catastrophic_pattern_is_stopped(root, directory, monkeypatch):
    monkeypatch.setattr("adapter.workspace.files.grep.PATTERN_SECONDS", 0.2)
    monkeypatch.setattr("adapter.workspace.files.grep.TEXT_SECONDS", 0.2)
    (directory / "f").write_text("a" * 60 + "b\n")
    start = time.thread_time()
    with pytest.raises(ToolError, match="took too long on a line of f"):
        grep(root, Grep("(a|aa)+$"))
    assert time.thread_time() - start < 5


# ------------------------------------------------------------ case, order, ignore globs


@pytest.fixture
def dated(directory):
    """Three files, the newest in the middle of the alphabet."""
    for name, text, age in (("a.py", "one\n", 30), ("b.py", "one\nONE\n", 10), ("c.py", "one\nx\none\n", 20)):
        (directory / name).write_text(text)
        os.utime(directory / name, (1_000_000 - age, 1_000_000 - age))
    return directory


def test_grep_honors_case_and_order_and_counts_all(dated, root):
    """X17: files stay together. The limit applies to lines, not to the counts."""
    assert [hit.path for hit in grep(root, Grep("one")).hits] == ["a.py", "b.py", "c.py", "c.py"]
    assert [hit.line for hit in grep(root, Grep("one", "b.py", case_sensitive=False)).hits] == [1, 2]
    newest = grep(root, Grep("one", order="newest", max_results=2))
    assert [(hit.path, hit.line) for hit in newest.hits] == [("b.py", 1), ("c.py", 1)]
    assert newest.files == (("b.py", 1), ("c.py", 2), ("a.py", 1))
    assert newest.total == 4


@pytest.mark.usefixtures("project")
def test_glob_respects_ignore_files_on_request(root):
    """X16, X26: by default, Blade's glob finds ignored files."""
    assert "logs/today.log" in find_by_glob(root, Glob("**/*.log")).paths
    assert find_by_glob(root, Glob("**/*.log", gitignore=True)).paths == ("logs/keep.log",)


@pytest.mark.usefixtures("project")
def test_listings_honour_ignore_globs_ignore_files_and_order(root):
    """X19: independently of each other."""
    names = [entry.path for entry in list_tree(root, Tree(order="directories_first")).entries]
    assert names.index("src") < names.index(".gitignore") < names.index("README.md")
    assert "only-root" in names
    assert "only-root" not in [entry.path for entry in list_tree(root, Tree(gitignore=True)).entries]
    kept = [entry.path for entry in list_tree(root, Tree(depth=2, ignore=("*.md", "src/deep", "node_*"))).entries]
    assert {"README.md", "src/deep", "node_modules"}.isdisjoint(kept)
    assert "src/main.rs" in kept


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("def f", ["def f"]), (r"def\s+needle_\w+\(", ["needle_"]), ("ab?c", ["a"]), ("ab*", ["a"]), ("ab+c", ["ab"]),
        ("a{,b", ["a{,b"]), ("x(?=abc)", []), ("^abc$", ["abc"]), ("[[:alpha:]]x", []), ("(?:abc){e<=1}d", []),
        ("(ab)+cd", ["cd"]), ("(?i)abc", []), (r"\x41bc", []), ("a{0,2}bcd", ["bcd"]), ("[abc]de", ["de"]),
        (r"a\.b", ["a.b"]), ("TODO|FIXME: ?x", ["TODO", "FIXME:"]), ("(a|b)c|de", ["c", "de"]), ("a|b*", []),
        ("a|", []), ("(ab|c)", []),
    ],
)  # fmt: skip
def test_required_texts_of_patterns(pattern, texts):
    """Only a text that occurs in every match can be required, or one of several alternatives."""
    assert list(find_required_texts(pattern)) == texts


LINES = st.lists(st.text(alphabet="ab \tAx1_.", max_size=6), max_size=6)
PATTERNS = st.lists(
    st.sampled_from(
        ["a", "b", "x", "ab", ".", r"\s", r"\b", "^", "$", "a*", "b+", "(a|b)", "[^a]", r"\w+", "x?", " ", "A", "|"]
    ),
    min_size=1,
    max_size=4,
).map("".join)


@given(lines=LINES, pattern=PATTERNS, case_sensitive=st.booleans(), end=st.sampled_from(["\n", "\r\n", "\r"]))
@examples(100)
def test_grep_agrees_with_line_by_line_search(root, directory, lines, pattern, case_sensitive, end):
    """Skipping files and parts of a text does not change the result."""
    assume(any(lines))
    text = end.join(lines)
    (directory / "f").write_bytes(text.encode())
    compiled = compile_pattern(pattern, not case_sensitive)
    expected = [number for number, line in enumerate(split_line_texts(text), 1) if compiled.search(line)]
    found = grep(root, Grep(pattern, case_sensitive=case_sensitive))
    assert [hit.line for hit in found.hits] == expected


RULES = st.lists(
    st.sampled_from(["a", "!a", "b/", "!b/", "*.x", "!*.x", "/a/b", "!a/b", "**/c", "a/**", "!c.x"]), max_size=5
)
BELOW = st.lists(st.sampled_from(["a", "b", "c", "a.x", "c.x"]), min_size=1, max_size=3).map("/".join)


@given(rules=RULES, path=BELOW, is_directory=st.booleans())
def test_ignore_file_agrees_with_its_single_rules(rules, path, is_directory):
    """The fast path for most files does not change the result."""
    path += "/" * is_directory
    assert (
        parse_ignore_file("\n".join(rules), "").decide(path) == GitIgnoreSpec.from_lines(rules).check_file(path).include
    )


@pytest.mark.parametrize("rule", ["\0" * 90_000, "x" * 90_000])
def test_huge_ignore_line_is_harmless(root, directory, rule, monkeypatch):
    """re2, which pathspec uses if it is installed, rejects such a pattern. Reading it takes a second."""
    monkeypatch.setattr(search, "SEARCH_SECONDS", 600.0)
    (directory / ".gitignore").write_text(f"{rule}\n*.log\n", encoding="utf-8")
    (directory / "a.txt").write_text("needle\n", encoding="utf-8")
    (directory / "a.log").write_text("needle\n", encoding="utf-8")
    found = grep(root, Grep("needle"))
    assert ([hit.path for hit in found.hits], found.notes) == (["a.txt"], ())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_grep_does_not_read_pipes(root, directory):
    """A pipe could block."""
    os.mkfifo(directory / "pipe")
    descriptor = os.open(directory / "pipe", os.O_RDWR)
    try:
        os.write(descriptor, b"needle\n")
        (directory / "file").write_text("needle\n")
        assert [hit.path for hit in grep(root, Grep("needle")).hits] == ["file"]
        assert os.read(descriptor, 100) == b"needle\n"
    finally:
        os.close(descriptor)


def test_grep_searches_beyond_the_first_block(root, directory):
    """The first block has 64 KB."""
    (directory / "large").write_text("x" * 99 + "\n" + ("y" * 99 + "\n") * 2_000 + "needle\n")
    (directory / "exact").write_text("z" * (64 * 1024 - 7) + "\nneedle")
    assert [(hit.path, hit.line) for hit in grep(root, Grep("needle")).hits] == [("exact", 2), ("large", 2_002)]
