"""No clamp is silent: if a call's argument or result is cut to a limit, the result's text reports it.

The clamps are found in the code: ``min`` and ``max`` of an argument, and slices up to a limit. `TOLD` states for each
how the model is informed; the test fails if one is missing or no longer exists.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from adapter.dialects import Dialect
from adapter.dialects.promptly import make_dialect
from adapter.dialects.promptly.tools_file_entries import ShellTool
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host_capabilities import Host
from adapter.workspace.capabilities.http_search_and_docs import HttpSearch
from tests.test_layers import tree_at
from tests.workspace.capabilities.test_web_fetch import LOCAL, Server

ADAPTER = Path(__file__).parent.parent / "adapter"
SEARCHED = ("dialects", "workspace")
_LIMIT = re.compile(r"(?:MAX|LONGEST)_\w+|\w+_(?:CHARACTERS|WORDS|LINES|BYTES)|SHOWN|ENDS")


def clamps() -> Iterator[str]:
    """Return ``file function: expression`` for each clamp."""
    for folder in SEARCHED:
        for path in sorted((ADAPTER / folder).rglob("*.py")):
            for function in ast.walk(tree_at(path)):
                if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    for node in _own(function):
                        if _is_clamp(node):
                            yield f"{path.relative_to(ADAPTER).as_posix()} {function.name}: {ast.unparse(node)}"


def _own(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Iterator[ast.AST]:
    """Return the nodes of a function or class, without nodes of inner functions and classes."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)


def _is_clamp(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="min" | "max"), args=args):
            return any(_is_asked_for(part) or _is_limit(part) for part in args)
        case ast.Subscript(slice=ast.Slice(lower=lower, upper=upper)):
            return any(_is_asked_for(end) or _is_limit(end) for end in (lower, upper) if end is not None)
        case ast.keyword(arg="limit" | "maxlen", value=value):
            return _is_limit(value)
        case _:
            return False


def _is_limit(node: ast.expr) -> bool:
    names = (getattr(each, "id", getattr(each, "attr", "")) for each in ast.walk(node))  # MAX_LINES, journal.MAX_LINES
    return any(map(_LIMIT.fullmatch, names))


def _is_asked_for(node: ast.expr) -> bool:
    """Detect ``operation.limit``, ``self.limit`` of a call's arguments, and the like."""
    return any(
        isinstance(each, ast.Attribute) and re.search(r"limit|max_|timeout|depth|context_lines|offset", each.attr)
        for each in ast.walk(node)
    )


class Case(NamedTuple):
    """A call that the clamp cuts, and the message in its text."""

    dialect: str
    tool: str
    arguments: dict[str, Any]
    said: str


LONG = "x" * 3_000
FILES = {
    "long.txt": f"short\n{LONG}\n",
    "many.txt": "".join(f"line {number}\n" for number in range(1, 6_001)),
    "long.py": f"def found(a={LONG!r}):\n    pass\n",
    "doc.md": f"# Words\n\nzebra {LONG}\n",
    "long.sh": "seq 1 600\nprintf '%03000d\\n' 7\nseq 601 700\n",
    "data": "",
}
TREE = [f"tree/d{number}/f" for number in range(600)]

TREE_CUT = Case("blade", "get_workspace_structure", {"limit": 1_000}, "limit 1000 is out of range (1-200); using 200")
NEWEST = Case("maki", "glob", {"pattern": "**/f"}, "only the first 100 are shown")
LONG_TIME = {"command": "true", "timeout": 700_000}
BATCH = Case(
    "maki",
    "batch",
    {"tool_calls": [{"tool": "read", "parameters": {"path": "data"}}] * 26},
    "a batch has at most 25 calls",
)
CONTEXT = {"path": "long.txt", "start_line": 2, "end_line": 2, "context_lines": 9}
AROUND = Case("blade", "read_file_range", CONTEXT, "Lines 1-2 (of 2)")
SLICED = Case("sliced", "Long", {}, "lines left out")
DOCS = "what is asked for is a page, which says of how many it is"

TOLD: dict[str, Case | str] = {
    "dialects/blade/read_tools.py _limit: max(1, min(self.limit, MAX_STRUCTURE_ENTRIES))": TREE_CUT._replace(
        arguments={"limit": 0}, said="limit 0 is out of range (1-200); using 1"
    ),
    "dialects/blade/read_tools.py _limit: min(self.limit, MAX_STRUCTURE_ENTRIES)": TREE_CUT,
    "dialects/maki/file_tools.py _first: max(self.offset, 1)": Case(
        "maki", "read", {"path": "long.txt", "offset": 0}, "offset 0 was treated as 1: lines are 1-based"
    ),
    "dialects/maki/file_tools.py MakiGlobTool: limit=MAX_PATHS": NEWEST,
    "dialects/promptly/builtin_tools.py ListFiles: limit=MAX_ENTRIES": Case(
        "promptly", "ListFiles", {"path": "wide"}, "entries 1-500 of 1701; narrow it"
    ),
    "dialects/promptly/builtin_tools.py to_operation: limit=MAX_ENTRIES": Case(
        "promptly", "FindFiles", {"directory": "tree", "name": "f"}, "only the first 500 are shown"
    ),
    "dialects/proto_cli.py to_operation: limit=MAX_ENTRIES": Case(
        "proto", "list_directory", {"path": "wide"}, "entries 1-1000 of 1701; narrow it"
    ),
    "dialects/proto_cli.py ProtoGlobTool: limit=MAX_PATHS": NEWEST._replace(dialect="proto"),
    "dialects/proxyai/file_tools.py _describe_matches: found.files[:self.limit]": Case(
        "proxyai", "IntelliJSearch", {"pattern": "f", "outputMode": "files_with_matches"}, "more files)"
    ),
    "dialects/proxyai/command_tools.py to_operation: min(self.timeout, MAX_TIMEOUT_MS)": Case(
        "proxyai", "Bash", LONG_TIME, "the timeout was reduced to 600000 ms"
    ),
    "dialects/proxyai/web_tools.py render: text[:DOCS_CHARACTERS]": Case(
        "proxyai", "GetLibraryDocs", {"context7CompatibleLibraryID": "/a/b"}, "truncated; pass a topic"
    ),
    "dialects/proxyai/session_tools.py to_operation: self.title.split()[:TITLE_WORDS]": Case(
        "proxyai", "TodoWrite", {"title": "a b c d e", "todos": []}, "the title was truncated to 4 words"
    ),
    "workspace/sandbox/background_commands.py start: "
    "[each for each in self._commands if each not in running and each != id][:-MAX_REMEMBERED]": "status not_found",
    "workspace/capabilities/capability_planner.py _run_batch: operation.calls[:ops.MAX_BATCH]": BATCH,
    "workspace/capabilities/capability_planner.py _run_batch: operation.calls[ops.MAX_BATCH:]": BATCH,
    "workspace/changes/text_codec.py is_binary: data[:PROBE_BYTES]": "the beginning decides whether a file is text",
    "workspace/changes/text_codec.py decode: data[:PROBE_BYTES]": "the beginning decides whether a file is text",
    "workspace/files/grep.py _may_match: data[:PROBE_BYTES]": "the beginning decides whether a file is text",
    "workspace/capabilities/memory_notes.py _require_note: names[:MAX_NAMED]": "the message counts further notes",
    "workspace/pausable_deadline.py with_deadline: max(min(operation.timeout_s, deadline.remaining), 0.1)": "known",
    "workspace/pausable_deadline.py with_deadline: min(operation.timeout_s, deadline.remaining)": "likewise",
    "workspace/sandbox/sandbox_notes.py build_session_sandbox_note: functions[:MAX_NAMED]": "others counted",
    "workspace/sandbox/output_capture.py join_raw: b''.join(self._tail)[-self._limit:]": "the gap names its size",
    "workspace/changes/history.py commit: summary[:journal.MAX_SUMMARY]": "only in the list of changes",
    "workspace/changes/text_codec.py _iter_guesses: data[:_LIBRARY_BYTES]": "a guessed encoding is noted",
    "workspace/changes/text_codec.py _iter_guesses: lines[start:start + _GUESS_BYTES]": "a guessed encoding is noted",
    "workspace/changes/text_codec.py _iter_guesses: max(0, first.start() - _WORD_BYTES)": "a guessed encoding is noted",
    "workspace/capabilities/capability_planner.py _search: hits[:operation.limit]": "as many as requested",
    "workspace/capabilities/http_search_and_docs.py search: min(request.limit, self.most)": Case(
        "maki", "websearch", {"query": "q", "num_results": 9}, "9 results were requested; the service returns at most 5"
    ),
    "workspace/capabilities/http_search_and_docs.py read: text[:MAX_DOCS]": (
        "(cut at 10000 characters; see the next page)"
    ),
    "workspace/capabilities/installed_package_docs.py _read_code: modules[:MAX_FILES]": "the last page has a note",
    "workspace/capabilities/installed_package_docs.py find: "
    "[other for other in installed if key and key in other][:MAX_FOUND]": "the best matches",
    "workspace/capabilities/installed_package_docs.py find: limit=MAX_FOUND": "the nearest names are requested",
    "workspace/capabilities/installed_package_docs.py find: list(chosen)[:MAX_FOUND]": "likewise",
    "workspace/capabilities/installed_package_docs.py read: text[start:start + PAGE_CHARACTERS]": DOCS,
    "workspace/capabilities/local_search.py search_with_notes: "
    "rank_sections(sections, request.query)[:request.limit]": "as many as requested",
    "workspace/capabilities/local_search.py _read_sections: limit=MAX_FILES": Case(
        "local", "websearch", {"query": "zebra"}, "only 500 files of **/README* were searched"
    ),
    "workspace/capabilities/memory_notes.py list: limit=MAX_NOTES": "a memory never has more",
    "workspace/files/symbol_search.py _guess_symbols: line[:MAX_TEXT]": "a declaration begins its line",
    "workspace/files/symbol_search.py build_result: min(self.operation.limit, MAX_LIMIT)": Case(
        "proxyai", "IntelliJSearch", {"pattern": "f", "limit": 501}, "limit 501 is out of range; it was reduced to 500"
    ),
    "workspace/files/read_file.py _select_lines: min(last, first + operation.max_lines - 1)": Case(
        "maki", "read", {"path": "many.txt", "limit": 2}, "lines 1-2 of 6000; continue with offset=3"
    ),
    "workspace/files/read_file.py _find_line_range: max(start - operation.context_lines, 1)": AROUND,
    "workspace/files/read_file.py _find_line_range: min(end + operation.context_lines, total)": AROUND,
    "workspace/files/read_file.py _cut: cut[:MAX_NAMED_LINES]": "ends in ...",
    "workspace/files/read_file.py _stream_lines: max(start - operation.context_lines, 1)": "the result names its lines",
    "workspace/files/read_file.py _stream_lines: "
    "min(filter(None, (wanted, operation.max_lines)), default=None)": "likewise",
    "workspace/files/grep.py _clip: shown[:MAX_LINE_CHARACTERS]": Case(
        "blade", "grep_search", {"pattern": "xxx"}, "x..."
    ),
    "workspace/files/grep.py _search_data: "
    "max(0, (MAX_HITS if self.operation.order == 'newest' else self._max_hits) - self._hit_count)": "counted anyway",
    "workspace/files/grep.py build_result: [hit for file in self.files for hit in file.hits][:self._max_hits]": Case(
        "maki", "grep", {"pattern": "line"}, "6000 matches in 1 file, the first 100 are shown"
    ),
    "workspace/files/grep.py _max_hits: min(limit, MAX_HITS)": Case(
        "blade", "codebase_search", {"query": "^", "max_results": 6_000}, "only the first 5000 matches are included"
    ),
    "workspace/sandbox/shell.py run_command: min(operation.timeout_s, MAX_TIMEOUT_S)": Case(
        "maki", "bash", {"command": "true", "timeout": 700}, "the timeout was reduced to 600 s"
    ),
    "workspace/capabilities/skills.py _load_skills: paths[:MAX_SKILLS]": Case(
        "maki", "skill", {"name": "none"}, "at most 100 are used"
    ),
    "workspace/capabilities/skills.py find_skills: tuple(skills.values())[:MAX_SKILLS]": "likewise",
    **dict.fromkeys(
        (
            "workspace/capabilities/skills.py parse_skill: description[:MAX_DESCRIPTION]",
            "workspace/capabilities/skills.py parse_skill: name[:MAX_NAME]",
            "workspace/capabilities/skills.py parse_skill: title[:MAX_NAME]",
        ),
        "the specification of skills allows no more",
    ),
    "workspace/approval_flow.py _describe_state_changes: names[:MAX_LISTED]": "the others are counted",
    "workspace/sandbox/problem_excerpt.py _clip: line[:MAX_LINE_BYTES - 3]": SLICED._replace(said="0..."),
    "workspace/sandbox/problem_excerpt.py __init__: maxlen=ENDS": SLICED,
    "workspace/sandbox/problem_excerpt.py _flush: self._block[cut:cut + MAX_LINE_BYTES + 1]": SLICED._replace(
        said="0..."
    ),
    "workspace/sandbox/problem_excerpt.py _add_lines: block.split(b'\\n', ENDS - first)[:ENDS - first]": SLICED,
    "workspace/sandbox/problem_excerpt.py _add_lines: block.rsplit(b'\\n', ENDS + 1)[-ENDS - 1:-1]": SLICED,
    "workspace/paths/resolved_path.py describe_missing: matches[:MAX_MATCHES]": "the others are counted",
    "workspace/paths/walk.py _walk_nodes: min(self.depth, self.limits.depth)": Case(
        "blade", "list_directory", {"path": "deep", "max_depth": 90}, "the search stopped at its limit of 64 levels"
    ),
}
"""By clamp: a call whose text reports it, the reason why no report is needed, or the place of the report."""

SHARED = [
    Case("maki", "code_execution", {"code": "1", "timeout": 301}, "the timeout was reduced to 300 s"),
    Case("maki", "webfetch", {"url": "PAGE", "timeout": 121}, "the timeout was reduced to 120 s"),
    Case("maki", "websearch", {"query": "q"}, "x..."),
    Case("local", "websearch", {"query": "zebra"}, "x..."),
    Case("proxyai", "IntelliJSearch", {"pattern": "found"}, "x... "),
]
"""Calls whose clamps are in `limit_timeout` and `shorten`."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A workspace that exceeds every limit."""
    folder = tmp_path_factory.mktemp("clamps")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    for path in [*TREE, *(f"wide/{number}" for number in range(1_200)), "/".join(["deep", *("d" * 80), "f"])]:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).touch()
    for number in range(501):
        (folder / "wide" / f"README{number}").write_text("zebra\n")
    for number in range(101):
        (folder / f".maki/skills/s{number}").mkdir(parents=True)
        (folder / f".maki/skills/s{number}/SKILL.md").write_text(f"---\nname: s{number}\n---\nx\n")
    return folder


class LongDocs:
    def find(self, name):
        return []

    def read(self, library_id, mode, topic, page):
        return "x" * 20_000


@pytest.fixture(scope="module")
def server():
    server = Server()
    rows = [{"title": "T", "url": "https://a.com", "content": LONG}]
    server.pages["/s"] = (200, {"Content-Type": "application/json"}, json.dumps(rows).encode())
    server.pages["/"] = (200, {"Content-Type": "text/plain"}, b"text")
    yield server
    server.close()


SLOW = ShellTool.model_validate(
    {"name": "Long", "executable": "sh", "argumentTemplate": [["long.sh"]], "truncateOutput": True}
)
CASES = list({str(case): case for case in (*TOLD.values(), *SHARED) if isinstance(case, Case)}.values())


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.dialect}-{case.tool}-{case.said}")
def test_clamped_result_reports_it_in_its_text(folder, server, case, tmp_path):
    """C012, C013, C273: in the text that the model reads, not only in the fields."""
    if case.tool == "code_execution":
        pytest.importorskip("pydantic_monty")
    service = HttpSearch(server.url + "/s?q={query}", most=5)
    host = Host(
        search="embedded" if case.dialect == "local" else service, docs=LongDocs(), web=LOCAL, state=str(tmp_path)
    )
    special: dict[str, str | Dialect] = {"local": "maki", "sliced": make_dialect([SLOW])}
    dialect = special.get(case.dialect, case.dialect)
    arguments = {name: server.url + "/" if value == "PAGE" else value for name, value in case.arguments.items()}
    with Workspace(folder, dialect, "yolo", host=host, state=tmp_path / "state") as workspace:
        result = workspace.run(case.tool, arguments)
    assert case.said in result.content, result.content[-500:]


def test_every_clamp_is_known():
    """A new clamp must be reported to the model and listed here with a call that shows it."""
    assert sorted(set(clamps())) == sorted(TOLD)


@pytest.mark.parametrize(
    ("dialect", "tool", "arguments", "said"),
    [
        ("blade", "read_file_range", {"path": "data", "context_lines": -1}, "context must be at least 0 lines, got -1"),
        ("blade", "codebase_search", {"query": "x", "max_results": 0}, "the limit must be at least 1 match, got 0"),
        ("blade", "list_directory", {"max_depth": 0}, "depth must be at least 1, got 0"),
        ("proto", "grep_search", {"pattern": "x", "limit": 0}, "the limit must be at least 1 match, got 0"),
        ("proxyai", "IntelliJSearch", {"pattern": "x", "limit": -1}, "limit must be at least 1, got -1"),
        ("maki", "websearch", {"query": "x", "num_results": 0}, "the number of results must be at least 1, got 0"),
        ("maki", "read", {"path": "data", "limit": 0}, "the limit must be at least 1 line, got 0"),
    ],
)
def test_requests_for_zero_results_are_refused(folder, dialect, tool, arguments, said):
    with Workspace(folder, dialect, "yolo", host=Host(search="embedded")) as workspace:
        result = workspace.run(tool, arguments)
    assert not result.ok
    assert said in result.content


def test_clamps_are_found_in_methods_and_inner_functions(tmp_path, monkeypatch):
    """In methods and inner functions, once each."""
    (tmp_path / "workspace").mkdir()
    (tmp_path / "dialects").mkdir()
    (tmp_path / "workspace" / "x.py").write_text(
        "def a(operation, text):\n    def b():\n        return text[:MAX_C]\n"
        "    return min(operation.limit, 5), max(1, 2)\n"
        "class D:\n    def e(self):\n        return found(limit=MAX_F), min(len('x'), 3), text[:2]\n"
    )
    monkeypatch.setattr("tests.test_clamps.ADAPTER", tmp_path)
    assert sorted(clamps()) == [
        "workspace/x.py a: min(operation.limit, 5)",
        "workspace/x.py b: text[:MAX_C]",
        "workspace/x.py e: limit=MAX_F",
    ]
