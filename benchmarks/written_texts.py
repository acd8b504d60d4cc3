"""Generate texts like models' texts, from seeds: reasoning, Markdown, source code, and calls with such strings.

Parsing is slow at punctuation that could begin a call: backticks, ``<``, brackets at the beginning of a line, fences,
tables, and mentioned markers. Each text has them about as often as answers of coding models do.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from adapter.parsing.formats import FORMATS
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet

TOOLS = ToolSet(
    Tool(name, parameters={"type": "object", "properties": {key: {"type": "string"} for key in keys}})
    for name, keys in {
        "write_file": ("path", "content"),
        "apply_edit": ("path", "old_text", "new_text"),
        "read_file": ("path",),
        "bash": ("command",),
        "grep_search": ("pattern", "path"),
    }.items()
)

SENTENCE = (
    "the parser reads a value and then it waits for more text because nothing can be said before the end of a line "
    "so we keep what has come in a buffer that every later step may look at while tests show where it was cut and "
    "why this function returns an empty list when users expect one item per row of their table in each file"
)
WORDS = SENTENCE.split()
NAMES = ("parse_line", "src/app.py", "List[int]", "max_tokens", "a < b", "Vec<String>", "{}", "npm run build", "x -> y",
         "<div>", "self._buffer[0]", "README.md", "if (n > 0) {", "*args", "{\"a\": 1}", "git diff --stat")  # fmt: skip
CJK = (
    "这个函数返回一个列表。",
    "ファイルを読み込みます。",
    "오류를 확인하세요.",
    "👍 done",
    "— naïve café",
    "✅ passed",
    "数据",
)

SOURCES = {
    "python": (
        "def {n}(rows: list[dict[str, int]], *, limit: int = {d}) -> dict[str, list[int]]:\n",
        '    """Rows by their key; `limit` < 0 keeps all."""\n',
        "    return {{row[\"name\"]: [row[key] for key in row if key != 'name'] for row in rows[:limit]}}\n",
        "    if not isinstance({n}, str) or len({n}) <= {d}:\n        raise ValueError(f\"bad {{{n}!r}}\\n\")\n",
        "class {n}(Base):\n    _PATTERN = re.compile(r\"^\\s*(?P<key>[\\w.-]+)\\s*[:=]\\s*'([^']*)'\")\n\n",
        "    # TODO: {{\"name\": \"{n}\"}} is what the server sends <sometimes>\n",
        "@dataclass\n",
    ),
    "ts": (
        "export const {n} = async <T extends object>(items: Array<T>, fn?: (x: T) => boolean): Promise<T[]> => {{\n",
        "  const url = `${{base}}/api/${{{n}}}?limit={d}`;\n",
        "  return items.filter((item) => item && fn!(item)).map((x) => ({{ ...x, id: {d} }}));\n}};\n",
        "  if (a < {d} && b > 2) {{ console.log(\"{n}: \" + a); }}\n",
    ),
    "html": (
        '<div class="{n}" data-id="{d}">\n  <a href="/x?y=1&z=2">link</a>\n</div>\n',
        "<script>if (window.{n} < {d}) {{ run(['a', \"b\"]); }}</script>\n",
        "<!-- {n} -->\n",
    ),
    "rust": (
        "fn {n}<'a>(input: &'a str, out: &mut Vec<Option<u8>>) -> Result<(), Box<dyn Error>> {{\n",
        "    match input.get(..{d}) {{\n        Some(x) if x < \"z\" => out.push(None),\n"
        "        _ => return Err(\"{n}\".into()),\n    }}\n}}\n",
    ),
    "bash": (
        "for f in $(git ls-files '*.py' | head -n {d}); do sed -i 's/{n}/\"new\"/g' \"$f\"; done\n",
        "cat <<'EOF' > {n}.txt\nline {d}\nEOF\n",
        "[ -n \"${n}\" ] && echo `date` >> log 2>&1 || exit 1\n",
    ),
    "json": (
        '{{\n  "version": "{d}.0.1",\n  "scripts": {{"test": "jest --ci", "{n}": "node {n}.js"}},\n  "files": []\n}}\n',
        '[\n  {{"id": {d}, "title": "{n}", "done": false}},\n  {{"id": {d}, "title": "x < y", "done": true}}\n]\n',
        '{{\n  "name": "{n}",\n  "values": [{d}, 2.5, null, {{"a": "b\\n"}}]\n}}\n',
    ),
    "diff": (
        "--- a/src/{n}.py\n+++ b/src/{n}.py\n@@ -{d},3 +{d},4 @@\n"
        " context(\"x\")\n-    old = {{\"a\": 1}}\n+    new = a < b\n",
    ),
}  # fmt: skip


def _words(chance: Random, least: int, most: int) -> str:
    words = chance.choices(WORDS, k=chance.randint(least, most))
    for _ in range(len(words) // 9):
        words[chance.randrange(len(words))] = f"`{chance.choice(NAMES)}`"
    if chance.random() < 0.15:
        words[chance.randrange(len(words))] = chance.choice(CJK)
    if chance.random() < 0.1:
        words[chance.randrange(len(words))] = chance.choice(
            ("<b>", "a <b", "3 > 2", "(see [this](x))", "**so**", "{n}")
        )
    text = " ".join(words)
    return text[:1].upper() + text[1:]


def _source(chance: Random, size: int, language: str | None = None) -> str:
    lines: list[str] = []
    while sum(map(len, lines)) < size:
        line = chance.choice(SOURCES[language or chance.choice(list(SOURCES))])
        lines.append(line.format(n=chance.choice(WORDS), d=chance.randint(0, 99)))
    return "".join(lines)


def _fence(chance: Random) -> str:
    language = chance.choice(list(SOURCES))
    return f"```{language}\n{_source(chance, chance.randint(60, 600), language)}```"


def _items(chance: Random) -> str:
    return "\n".join(f"{chance.choice(('-', '1.', '*'))} {_words(chance, 4, 20)}" for _ in range(chance.randint(2, 6)))


def _table(chance: Random) -> str:
    rows = "\n".join(
        f"| `{chance.choice(NAMES)}` | {chance.randint(0, 99)} | {_words(chance, 2, 5)} |" for _ in range(4)
    )
    return f"| name | n | what |\n|---|--:|---|\n{rows}"


def _heading(chance: Random) -> str:
    return f"## {_words(chance, 2, 6)}"


def _quotation(chance: Random) -> str:
    return f"> {_words(chance, 8, 20)}"


def _paragraph(chance: Random) -> str:
    return ". ".join(_words(chance, 6, 25) for _ in range(chance.randint(1, 5))) + "."


BLOCKS: dict[Callable[[Random], str], int] = {
    _paragraph: 10, _items: 4, _fence: 3, _heading: 2, _table: 1, _quotation: 1,
}  # fmt: skip


def markdown(size: int, seed: int = 1) -> str:
    """Return an answer of about ``size`` characters without a call."""
    chance, blocks, length = Random(seed), list[str](), 0
    while length < size:
        (make,) = chance.choices(list(BLOCKS), list(BLOCKS.values()))
        blocks.append(make(chance))
        length += len(blocks[-1]) + 2
    return "\n\n".join(blocks)


def source(size: int, seed: int = 1) -> str:
    """Return source code of about ``size`` characters, in several languages."""
    return _source(Random(seed), size)


def reasoning(size: int, seed: int = 1) -> str:
    chance, lines, length = Random(seed), list[str](), 0
    while length < size:
        lines.append(f"{chance.choice(('Okay, ', 'Wait, ', 'So ', ''))}{_words(chance, 10, 60)}.")
        length += len(lines[-1]) + 1
    return "\n".join(lines)


def is_whole_answer(name: str) -> bool:
    """Return whether a call in the format ``name`` is the whole answer, because nothing marks where it begins."""
    return not FORMATS[name].openers and FORMATS[name].build_tool_openers is None


def answer(name: str = "hermes", seed: int = 1) -> str:
    """Return an answer of about 2 KB: reasoning, some Markdown, and one call that edits a file."""
    edit = {"path": "src/app.py", "old_text": source(250, seed), "new_text": source(350, seed + 1)}
    call = FORMATS[name].encode_calls([("apply_edit", edit)])
    opening = "" if is_whole_answer(name) else f"{_opening(500, seed)}\n\n"
    return f"<think>\n{reasoning(500, seed)}\n</think>\n\n{opening}{call}"


def _opening(size: int, seed: int) -> str:
    chance = Random(seed)
    return "\n\n".join(make(chance) for make in (_paragraph, _items))[:size]


def file_call(name: str, size: int, seed: int = 1) -> str:
    """Return a call that writes a file of source code."""
    return FORMATS[name].encode_calls([("write_file", {"path": "src/app.py", "content": source(size, seed)})])


def small_calls(count: int, name: str = "hermes", seed: int = 1) -> str:
    """Return calls of several tools, with a line of prose before every fourth."""
    chance, parts = Random(seed), list[str]()
    for number in range(count):
        if number % 4 == 0:
            parts.append(_words(chance, 5, 15) + ".")
        parts.append(FORMATS[name].encode_calls([_small_call(chance)]))
    return "\n".join(parts)


def _small_call(chance: Random) -> tuple[str, dict[str, str]]:
    path = f"src/{chance.choice(WORDS)}.py"
    return chance.choice([
        ("read_file", {"path": path}),
        ("bash", {"command": f"git log -n {chance.randint(1, 9)} -- {path} | grep -v '<none>' && echo \"{path}\""}),
        ("grep_search", {"pattern": r"^\s*def \w+\(", "path": path}),
        ("apply_edit", {"path": path, "old_text": "    return a < b\n", "new_text": "    return {\"a\": b}[key]\n"}),
    ])  # fmt: skip
