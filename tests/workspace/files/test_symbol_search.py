"""Outlines and symbol searches: every flag changes the result, and every refusal has the next step."""

import sys

import pytest

from adapter.core.errors import ToolError
from adapter.outline import syntax
from adapter.tools.operations import FindSymbols, Outline
from adapter.workspace.files import symbol_search
from adapter.workspace.files.symbol_search import find_symbols, read_outline


@pytest.fixture
def project(directory):
    for path, text in {
        "pkg/pyproject.toml": "",
        "pkg/user_service.py": "MAX_USER = 1\n\nclass UserService:\n    def get_user(self): ...\n\ndef user(): ...\n",
        "pkg/deep/other.py": "def load_user(): ...\n",
        "web/user.ts": "export class UserView { user = 1; }\n",
        "web/notes.txt": "class UserNotes\n",
        "build/user.py": "def built_user(): ...\n",
        "ignored.py": "def ignored_user(): ...\n",
        ".gitignore": "ignored.py\n",
    }.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
    return directory


@pytest.fixture
def names(project, root):
    """Return the names found, the best first."""

    def names(pattern, **options):
        return [match.name for match in find_symbols(root, FindSymbols(pattern, limit=50, **options)).matches]

    return names


ALL = ["MAX_USER", "UserService", "UserView", "get_user", "load_user", "user", "user", "user.ts", "user_service.py"]


def test_names_of_files_and_symbols_are_found(names):
    """Whole names first, then prefixes, without ignored files and build directories."""
    assert sorted(names("user")) == ALL
    assert names("user")[:2] == ["user", "user"]


def test_match_has_location_and_context(project, root):
    """File, line, column, text and context."""
    match = find_symbols(root, FindSymbols("get_user")).matches[0]
    assert (match.path, match.line, match.column) == ("pkg/user_service.py", 4, 9)
    assert match.text == "def get_user(self): ..."
    assert match.context == "method of class UserService"


def test_the_scope_is_honored(names):
    """Project, module, directory, file, and custom globs."""
    assert sorted(names("user", scope="project")) == ALL
    in_pkg = ["MAX_USER", "UserService", "get_user", "load_user", "user", "user_service.py"]
    assert sorted(names("user", scope="module", path="pkg/deep/other.py")) == in_pkg
    assert sorted(names("user", scope="module", path="web/user.ts")) == ALL
    assert names("user", scope="directory", path="pkg/deep") == ["load_user"]
    assert names("user", scope="file", path="pkg/deep/other.py") == ["load_user"]
    assert sorted(names("user", scope="custom", path="web/**, pkg/deep/*")) == [
        "UserView",
        "load_user",
        "user",
        "user.ts",
    ]


def test_scope_must_match_the_path(project, root):
    with pytest.raises(ToolError, match="is a directory"):
        find_symbols(root, FindSymbols("user", scope="file", path="pkg"))
    with pytest.raises(ToolError, match="is a file"):
        find_symbols(root, FindSymbols("user", scope="directory", path="web/user.ts"))


def test_file_type_and_context_narrow_the_search(names):
    """By language or extension, and by the kind of name."""
    assert sorted(names("user", file_type="typescript")) == ["UserView", "user", "user.ts"]
    assert names("notes", file_type="txt") == ["notes.txt"]
    assert sorted(names("user", context="files")) == ["user.ts", "user_service.py"]
    assert sorted(names("user", context="classes")) == ["UserService", "UserView"]
    assert sorted(names("user", context="functions")) == ["get_user", "load_user", "user"]
    assert sorted(names("user", context="variables")) == ["MAX_USER", "user"]


def test_case_regex_and_whole_words_are_honored(names):
    """D12: these flags were declared and ignored."""
    assert sorted(names("User", case_sensitive=True)) == ["UserService", "UserView"]
    assert names("^get_.*r$", regex=True) == ["get_user"]
    assert names("^get_.*r$") == []
    assert sorted(names("user", whole_words=True)) == ["user", "user", "user.ts"]


def test_words_and_camel_humps_match(names):
    """All words must occur; capitals are the beginnings of words."""
    assert names("service get") == []
    assert names("service user", context="classes") == ["UserService"]
    assert names("UsSe") == ["UserService"]


def test_limit_applies_to_matches_but_not_count(project, root):
    """The modes files_with_matches and count need all matches."""
    found = find_symbols(root, FindSymbols("user", limit=2))
    assert len(found.matches) == 2
    assert found.total == len(ALL)
    assert dict(found.files) == {"pkg/user_service.py": 5, "pkg/deep/other.py": 1, "web/user.ts": 3}
    with pytest.raises(ToolError, match="limit must be at least 1, got 0"):
        find_symbols(root, FindSymbols("user", limit=0))


def test_search_without_grammar_uses_lines_with_note(names, root, monkeypatch):
    monkeypatch.setitem(sys.modules, "tree_sitter_python", None)
    syntax._load_parser.cache_clear()
    found = find_symbols(root, FindSymbols("user", scope="directory", path="pkg", limit=50))
    assert {match.name for match in found.matches} >= {"UserService", "get_user", "load_user", "user"}
    assert any("Python" in note and "toolcall-adapter[index]" in note for note in found.notes)
    syntax._load_parser.cache_clear()


def test_symbol_search_stops_at_time_limit(project, root, monkeypatch):
    """The results so far are returned."""
    monkeypatch.setattr(symbol_search, "SEARCH_SECONDS", -1.0)
    assert "stopped" in find_symbols(root, FindSymbols("user")).notes[0]


@pytest.mark.parametrize(("pattern", "said"), [("  ", "empty"), ("(", "not a valid regular expression")])
def test_bad_patterns_are_refused(project, root, pattern, said):
    """With the reason."""
    with pytest.raises(ToolError, match=said):
        find_symbols(root, FindSymbols(pattern, regex=True))


def test_an_outline_is_read_from_a_file(project, root):
    """The path is shown relative to the workspace."""
    found = read_outline(root, Outline("pkg/user_service.py"))
    assert (found.path, found.language, found.total_lines) == ("pkg/user_service.py", "Python", 6)


def test_impossible_outlines_are_explained(project, root, monkeypatch):
    """With the next step."""
    with pytest.raises(ToolError, match=r"notes\.txt is not in a language.*Python.*read or search the file instead"):
        read_outline(root, Outline("web/notes.txt"))
    monkeypatch.setattr(symbol_search, "MAX_SOURCE_BYTES", 10)
    with pytest.raises(ToolError, match="larger than 10 bytes"):
        read_outline(root, Outline("pkg/user_service.py"))
