"""Worked examples for small models: which few to show before a request.

A 135M model repeats the tool of the last call that it has seen. Shown one
example of each tool in a fixed order it therefore uses the last tool for
everything; shown the examples most like the request, the nearest one last, the
same habit makes it choose well. Values are masked before comparing, so that
"change 'a' to 'b' in x.py" is like "change 'port = 1' to 'port = 2' in y.ini".
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence

from adapter.constraints.mentions import quoted, spelled_paths
from adapter.values.events import JsonObject
from adapter.values.fields import frozen


@frozen
class Example:
    """A request and the call that answers it."""

    request: str
    tool: str
    arguments: JsonObject


# Each verb that people use for a tool once. No value stands in two examples:
# what is shown twice is copied. New ones are welcome where a model goes wrong,
# but never a request of tests/ or benchmarks/.
EXAMPLES = (
    Example("Show docs/intro.md", "read_file", {"path": "docs/intro.md"}),
    Example("What does lib/main.c contain?", "read_file", {"path": "lib/main.c"}),
    Example("Open the file Makefile and explain it", "read_file", {"path": "Makefile"}),
    Example(
        "Create notes/plan.txt with the text 'first step'",
        "write_file",
        {"path": "notes/plan.txt", "content": "first step"},
    ),
    Example(
        "Make a new file lib/sum.c with a function that adds numbers",
        "write_file",
        {"path": "lib/sum.c", "content": "int sum(int a, int b) {\n    return a + b;\n}\n"},
    ),
    Example("Save 'done' as status.txt", "write_file", {"path": "status.txt", "content": "done"}),
    Example("Write a short page about.html", "write_file", {"path": "about.html", "content": "<p>About us</p>\n"}),
    Example(
        "In setup.cfg change 'debug = 1' to 'debug = 0'",
        "apply_edit",
        {"path": "setup.cfg", "old_text": "debug = 1", "new_text": "debug = 0"},
    ),
    Example(
        "'recieve' must be 'receive' in docs/mail.txt, correct it",
        "apply_edit",
        {"path": "docs/mail.txt", "old_text": "recieve", "new_text": "receive"},
    ),
    Example(
        "Replace blue with green in theme.css",
        "apply_edit",
        {"path": "theme.css", "old_text": "blue", "new_text": "green"},
    ),
    Example(
        "Rename size to width in lib/box.c",
        "apply_edit",
        {"path": "lib/box.c", "old_text": "size", "new_text": "width"},
    ),
    Example("Search for import in tools", "grep_search", {"pattern": "import", "path": "tools"}),
    Example("Where is 'timeout' mentioned?", "grep_search", {"pattern": "timeout"}),
    Example("Find all lines that use TLS in net", "grep_search", {"pattern": "TLS", "path": "net"}),
    Example("List the files in assets", "list_directory", {"path": "assets"}),
    Example("Which files are there?", "list_directory", {}),
    Example("Find the file named 'logo'", "find_files", {"pattern": "logo"}),
    Example("Which files end in .toml?", "find_files", {"pattern": ".toml"}),
    Example("Run make in the project", "run_command", {"command": "make", "cwd": "."}),
    Example("Execute 'npm install'", "run_command", {"command": "npm install", "cwd": "."}),
)

AS_WELL: Mapping[str, JsonObject] = {"apply_edit": {"replace_all": True}}
"""What a call may say besides and still answer the request: a dialect's only edit may be of every place."""

PROGRAMS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "read_file": ("ShowFileContents", {"path": "file"}),
    "list_directory": ("ListFiles", {"path": "path"}),
}
"""Promptly's tools that answer such a request, and what they call its arguments. A user's entry may stand for them, and
what a program does is nothing that could be compared, so they are told here."""


def nearest(
    request: str, tools: Container[str], examples: Sequence[Example] = EXAMPLES, count: int = 3
) -> list[Example]:
    """The examples most like the request, at most one per tool, the nearest last."""
    known = [example for example in examples if example.tool in tools]
    words = [Counter(skeleton(example.request)) for example in known]
    spread = Counter(word for each in words for word in each)
    weights = {word: math.log(1 + len(known) / times) for word, times in spread.items()}
    asked = Counter(skeleton(request))
    ranked = sorted(
        zip(known, (_likeness(asked, each, weights) for each in words), strict=True), key=lambda pair: pair[1]
    )
    best = {example.tool: (example, likeness) for example, likeness in ranked}
    chosen = sorted(best.values(), key=lambda pair: pair[1])[-count:]
    return [example for example, _ in chosen]


def skeleton(request: str) -> list[str]:
    """The words of a request in lower case, its quoted pieces and paths masked."""
    for piece in quoted(request):
        request = request.replace(piece, " _text_ ", 1)
    for path in spelled_paths(request):
        request = request.replace(path, " _path_ ", 1)
    return re.findall(r"\w+", request.lower())


def _likeness(one: Counter[str], other: Counter[str], weights: dict[str, float]) -> float:
    """Cosine of the weighted word counts; a word that no example has only makes a request longer."""
    rare = max(weights.values(), default=1.0)

    def length(words: Counter[str]) -> float:
        return math.sqrt(sum((times * weights.get(word, rare)) ** 2 for word, times in words.items()))

    shared = sum(one[word] * other[word] * weights[word] ** 2 for word in one.keys() & other.keys())
    return shared / ((length(one) * length(other)) or 1.0)
