"""Globs: their matches, and the time that they need."""

import fnmatch
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adapter.core.errors import ToolError
from adapter.workspace.paths.globs import GlobMatcher


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("*.py", ["a.py", ".py", "A.PY"], ["d/a.py", "a.pyc"]),
        ("**/*.py", ["a.py", "d/a.py", "d/e/a.py"], ["a.txt"]),
        ("src/**", ["src/a", "src/d/a"], ["a", "lib/src"]),
        ("src/**/x.*", ["src/x.a", "src/d/e/x.b"], ["x.a", "src/y.a"]),
        ("a?c", ["abc"], ["ac", "a/c", "abbc"]),
        ("[a-c]x[!0-9]", ["axx", "cx-"], ["dxx", "ax1"]),
        ("[]]", ["]"], ["["]),
        ("{src,lib}/*.{ts,tsx}", ["src/a.ts", "lib/b.tsx"], ["src/a.js", "x/a.ts"]),
        ("*.{a,b{c,d}}", ["x.a", "x.bc", "x.bd"], ["x.b"]),
        ("/src/*.py", ["src/a.py"], ["a.py"]),
        ("./a", ["a"], ["b"]),
        ("a[b", ["a[b"], ["ab"]),
        ("{a", ["{a"], ["a"]),
        ("\\*", ["*"], ["a"]),
        ("é*", ["éa", "e\u0301a"], ["ea"]),
    ],
)
def test_glob_matches_expected_paths(pattern, matching, other):
    """Names stay within a component unless the pattern has **."""
    matcher = GlobMatcher(pattern)
    assert [path for path in matching if not matcher.matches(path)] == []
    assert [path for path in other if matcher.matches(path)] == []


def test_glob_ignores_case_by_default():
    """The document's default is case-insensitive."""
    assert GlobMatcher("*.PY").matches("a.py")
    assert not GlobMatcher("*.PY", case_sensitive=True).matches("a.py")


@pytest.mark.parametrize(
    ("pattern", "said"), [("", "empty"), ("../*", r"'\.\.'"), ("a" * 501, "501"), ("{a,b}" * 7, "alternatives")]
)
def test_glob_refuses_invalid_patterns(pattern, said):
    """With the reason."""
    with pytest.raises(ToolError, match=said):
        GlobMatcher(pattern)


@pytest.mark.parametrize("pattern", ["*a" * 200 + "b", "**/" * 100 + "b", "{*a*a,*b*b}" * 5])
def test_glob_matching_is_fast(pattern):
    """A backtracking matcher would take exponential time."""
    start = time.thread_time()
    assert not GlobMatcher(pattern).matches("/".join(["a" * 200] * 50))
    assert time.thread_time() - start < 5


NAMES = st.text(alphabet="ab.", min_size=1, max_size=4)
PATTERNS = st.lists(
    st.sampled_from(["a", "b", ".a", "*", "?", "/", "**/", "[ab]", "[!a]", "{a,b*}", "{*,a/b}"]), min_size=1, max_size=6
).map("".join)


@given(pattern=PATTERNS, names=st.lists(NAMES, min_size=1, max_size=3))
def test_may_match_has_no_false_negatives(pattern, names):
    """A walk skips a file by the beginning of its path."""
    assume(pattern.strip("/"))
    matcher = GlobMatcher(pattern)
    assert matcher.may_match(names[-1]) or not matcher.matches("/".join(names))


@given(part=st.lists(st.sampled_from(["a", "b", "*", "?", "[ab]", "[!a]"]), min_size=1).map("".join), name=NAMES)
def test_glob_agrees_with_fnmatch(part, name):
    """``fnmatch`` backtracks and is slow on some patterns."""
    assert GlobMatcher(part, case_sensitive=True).matches(name) == fnmatch.fnmatchcase(name, part.replace("**", "*"))
