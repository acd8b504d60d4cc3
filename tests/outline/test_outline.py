"""Outlines: every language by a case of its own, nothing missed on real files, nothing that makes them fail."""

import ast
import sys
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.errors import ToolError
from adapter.outline import extractor, syntax
from adapter.outline.extractor import extract_outline
from adapter.outline.formatter import format_outline
from adapter.outline.import_merging import expand_import, merge_imports
from adapter.outline.languages import LANGUAGES, find_extensions, find_language
from adapter.outline.syntax import MissingGrammar

CASES = sorted((Path(__file__).parent / "cases").glob("*.txt"))
STDLIB = Path(sysconfig.get_paths()["stdlib"])
REAL_FILES = (
    *("argparse.py", "ast.py", "cmd.py", "codecs.py", "configparser.py", "contextlib.py", "dataclasses.py"),
    *("datetime.py", "difflib.py", "enum.py", "fractions.py", "functools.py", "inspect.py", "json/decoder.py"),
    *("logging/__init__.py", "pathlib.py", "shutil.py", "tarfile.py", "tempfile.py", "typing.py"),
)


SWIFT = """class A {
  func f(x: B) {
    switch x {
    #if D
    case C.a: g()
    #endif
    default: h()
    }
  }
  func i() {}
}
"""


def shown(text, name):
    language = find_language(name, text)
    assert language is not None
    return format_outline(extract_outline(text, name, language))


def all_items(items):
    for item in items:
        yield item
        yield from all_items(item.members)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_outline_of_each_language_equals_its_case(case):
    """Sections in their order, items with their lines, members below them."""
    text, _, expected = case.read_text(encoding="utf-8").partition("=====\n")
    assert shown(text, "a" + Path(case.stem).suffix) + "\n" == expected


def test_every_language_has_a_case():
    """C185: adding a language is a table and a case."""
    covered = [find_language(case.stem) for case in CASES]
    assert [language.name for language in LANGUAGES if language not in covered] == []
    assert len({language.grammar for language in LANGUAGES}) >= 16


@pytest.mark.parametrize("name", REAL_FILES)
def test_no_function_of_a_real_file_is_missed(name):
    """Every function and class that ast sees outside functions, by name and line; and far fewer characters."""
    path = STDLIB / name
    text = path.read_text(encoding="utf-8")

    def declared(node):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield child.name, child.lineno
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from declared(child)

    found = extract_outline(text, name, LANGUAGES[1])
    names = {(each.text, each.line) for item in all_items(found.items) for each in item.names}
    assert set(declared(ast.parse(text))) - names == set()
    assert len(format_outline(found)) < 0.4 * len(text)


def test_broken_code_gives_a_partial_outline():
    """An incomplete file has an outline with a note about the first syntax error."""
    text = (
        "def whole():\n    return 1\n\ndef broken(:\n    x = (\n\nclass After:\n    y = [\n\ndef after():\n    pass\n"
    )
    assert "def whole() [1-2]" in shown(text, "a.py")
    assert "class After: y = [ [7-8]" in shown(text, "a.py")
    assert "def after() [10-11]" in shown(text, "a.py")
    assert "first at line 4" in shown(text, "a.py")


def test_fields_beyond_eight_are_omitted_but_not_methods():
    """A marker replaces the ninth."""
    fields = "".join(f"    field_{number}: int\n" for number in range(1, 12))
    text = shown(f"class A:\n{fields}    def method(self): ...\n", "a.py")
    assert "field_7: int; field_8: int [2-9]" in text
    assert "field_9" not in text
    assert text.count("[truncated]") == 1
    assert "def method(self) [13]" in text


def test_constants_beyond_eight_keep_their_names():
    """They share lines of at most 120 characters, each with the range it covers."""
    lines = shown("".join(f"CONSTANT_NUMBER_{number} = {number}\n" for number in range(1, 41)), "a.py").split("\n")
    assert lines[1].endswith("CONSTANT_NUMBER_5 = 5 [1-5]")
    assert "CONSTANT_NUMBER_8 = 8; CONSTANT_NUMBER_9; CONSTANT_NUMBER_10" in lines[2]
    assert lines[-1].endswith("CONSTANT_NUMBER_40 [35-40]")
    assert max(map(len, lines)) < 130


@pytest.mark.parametrize(
    ("code", "name", "expected"),
    [
        (
            f"int f({', '.join(f'char *parameter_{n}' for n in range(99))});",
            "a.c",
            "int f(char *parameter_0, char *parameter_1, char *parameter_2, char *parameter_3, ...) [1]",
        ),
        (
            f"inline fun <{', '.join(f'reified T{n}' for n in range(20))}> build(body: () -> Unit): Map<T0, T1> = 1",
            "a.kt",
            "inline fun <...> build(...): Map<T0, T1> [1]",
        ),
        (f"def f(x={'(' * 90}1{')' * 90}) -> int: ...", "a.py", "def f(...) -> int [1]"),
        (f"func (s *unc) unc(a{'b' * 90} int) error {{}}", "a.go", "func (s *unc) unc(...) error [1]"),
        (f"std::function<void(int)> on(int a{'b' * 90});", "a.cpp", "std::function<void(int)> on(...) [1]"),
    ],
)
def test_long_signatures_keep_name_and_return_type(code, name, expected):
    """Shortened lists are marked."""
    assert expected in shown(code, name)


def test_deep_nesting_in_a_signature_is_handled():
    """Thousands of brackets are within the bytes that a signature may have."""
    assert "def f(" in shown(f"def f(x={'(' * 1_900}1{')' * 1_900}): ...", "a.py")


@pytest.mark.parametrize(
    ("code", "name", "wanted"),
    [
        ("API_TYPE(void *)\nATTR_MALLOC(1)\nmake(int size);\nAPI_TYPE(void) drop(void *it);", "a.h", ["make", "drop"]),
        ("void f(void) ATTR_HIDDEN;\nvoid ATTR_HIDDEN g(void);\nint WINAPI h(int);", "a.h", ["f", "g", "h"]),
        ("UINT64\nf (int x)\n{\n}\n\nSTART_TEST(t)\n{\n}\nEND_TEST\n\nint g(void);", "a.c", ["f", "t", "g"]),
        ("class A\n{\n  PRIVATE_UNLESS_TESTED:\n  void f();\n};", "a.cpp", ["f"]),
        ("return function(x)\n  local function f() end\n  function x.g() end\nend", "a.lua", ["f", "x.g"]),
        ("return setmetatable({}, { __call = function(self) end })", "a.lua", ["__call"]),
        ("begin\n  X = 1\nrescue\n  class A\n    def f; end\n  end\nend", "a.rb", ["f"]),
        (SWIFT, "a.swift", ["f", "i"]),
        ("A.prototype.run = wrap(function (x) {\n});", "a.js", ["A.prototype.run"]),
    ],
)
def test_functions_in_unusual_places_are_found(code, name, wanted):
    """After macros, in the return value of a module, in a rescue."""
    language = find_language(name, code)
    assert language is not None
    found = extract_outline(code, name, language)
    names = {each.text for item in all_items(found.items) for each in item.names}
    texts = " ".join(item.text for item in all_items(found.items))
    assert [each for each in wanted if each not in names and f"({each})" not in texts] == []


def test_comments_in_signatures_are_omitted():
    """At any depth."""
    code = "template <class T>\nT add(T a, // the first\n      T b);\n"
    assert "template <class T> T add(T a, T b) [1-3]" in shown(code, "a.cpp")


@pytest.mark.parametrize(
    ("code", "language"),
    [
        ("/* class of\nnamespace rules */\nint f(void);", "C"),
        ("class A : B {};", "C++"),
        ("namespace a::b {\n}", "C++"),
        ("using a::b;", "C++"),
    ],
)
def test_header_is_cpp_only_because_of_its_code(code, language):
    """A word of prose at the start of a line decides nothing."""
    assert [each.name for each in LANGUAGES if each is find_language("a.h", code)] == [language]


def test_long_values_and_signatures_are_cut():
    """A table of data or a function with forty parameters does not fill the outline."""
    assert len(shown(f"TABLE = {list(range(1000))}\n", "a.py")) < 120
    assert len(shown(f"def f({', '.join(f'parameter_{n}' for n in range(99))}): ...\n", "a.py")) < 300


def test_file_without_declarations_has_a_message():
    """An empty answer would look like a failure."""
    assert shown("\n\n", "a.py") == "(a.py declares nothing; it has 2 lines of Python)"


def test_items_are_bounded(monkeypatch):
    """A note reports the omission."""
    monkeypatch.setattr(extractor, "MAX_ITEMS", 3)
    text = shown("def f(): ...\n" * 9, "a.py")
    assert text.count("def f") == 3
    assert "only the first 3 declarations" in text


def test_slow_parsing_is_aborted(monkeypatch):
    """Some grammars are slow for text that is not code."""
    monkeypatch.setattr(extractor, "PARSE_SECONDS", -1.0)
    with pytest.raises(ToolError, match="read the file instead"):
        extract_outline("x = 1\n" * 5_000, "a.py", LANGUAGES[1])


def test_missing_grammar_error_names_the_package(monkeypatch):
    """The message has the install command and an alternative."""
    monkeypatch.setitem(sys.modules, "tree_sitter_python", None)
    syntax._load_parser.cache_clear()
    with pytest.raises(MissingGrammar, match=r"toolcall-adapter\[index\].*read the file instead"):
        extract_outline("x = 1", "a.py", LANGUAGES[1])
    syntax._load_parser.cache_clear()


@pytest.mark.parametrize(
    ("name", "text", "language"),
    [
        ("a.PY", "", "Python"),
        ("a.h", "struct A { int x; };", "C"),
        ("a.h", "namespace a {\nclass B;\n}", "C++"),
        ("a.js", "// @flow\n", "TSX"),
        ("a.js", "", "JavaScript"),
    ],
)
def test_language_depends_on_name_and_text(name, text, language):
    """If an extension is ambiguous, the text decides."""
    found = find_language(name, text)
    assert found is not None
    assert found.name == language


def test_other_files_have_no_language():
    """Neither an unknown extension nor none."""
    assert find_language("a.txt") is None
    assert find_language("py") is None
    assert find_language("dir.py/Makefile") is None


@pytest.mark.parametrize("given_type", ["Python", "py", ".py", "*.py", "PYTHON"])
def test_file_types_may_be_names_or_extensions(given_type):
    """However a model spells it."""
    assert "py" in find_extensions(given_type)


def test_imports_are_expanded_and_merged():
    """The common beginning is written once."""
    paths = expand_import("std::{fs, io::{self, Read}}", "::")
    assert paths == ["std::fs", "std::io::self", "std::io::Read"]
    assert merge_imports([*paths, "core::mem"], "::") == ["std::{fs, io::{self, Read}}", "core::mem"]
    assert merge_imports(["a.b", "a.b.c", "a.b"], ".") == ["a.{b, b.c}"]
    assert merge_imports([".rel", "..up.x"], ".") == [".rel", "..up.x"]
    assert "  a.a" in shown(f"import {'a.' * 1_900}b", "a.py")
    assert "  x.{a, b}" in shown("from x import (  # first, second\n    a,  # noqa\n    b,\n)", "a.py")


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.name)
@given(text=st.text(alphabet="{}()[]<>:;,.=\"'#@*/ \n\r\tadefclstrun_é\x00", max_size=80))
def test_no_text_makes_an_outline_fail(language, text):
    found = extract_outline(text, "f", language)
    assert all(1 <= item.start_line <= item.end_line for item in all_items(found.items))
    format_outline(found)
