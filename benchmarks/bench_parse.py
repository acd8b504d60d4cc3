"""Measure parsing speed as ratios within one run: to a lower bound, to other parsers, and as texts grow.

    python -m benchmarks.bench_parse [--long] [--json] [TABLE ...]

Tables: whole, repair, streaming, hostile; all by default. ``--long`` adds 4 MB. Other parsers are measured if they are
installed (`benchmarks.peers`). Exits with 1 if a limit is exceeded; the limits are constants below.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial

from adapter.parsing.formats import FORMATS
from adapter.parsing.parser import Parser, parse
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet
from benchmarks import written_texts
from benchmarks.peers import (
    CLOSE,
    find_and,
    jiter_stream,
    orjson_loads,
    repairers,
    sglang_stream,
    whole_readers,
)

LINE = "    total += compute(value, 3)  # add it\n"
QUOTING_LINE = '    print("total", compute(value, 3))  # say it\n'
TOOL = Tool(
    "write_file",
    parameters={"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}},
)
TOOLS = ToolSet([TOOL])
DELTA = 4
"""Length of a chunk of a stream, in characters: about one token."""

WHOLE_BARS = {"2 KB, one call": (15, 25), "100 KB, one file write": (3, 3), "1 MB, no call": (10, 10),
              "200 small calls": (12, 12)}  # fmt: skip
"""Maximum multiples of the lower bound, with the format given and with the format detected."""

DELTA_BAR = 1.5
"""Maximum time per chunk of a stream, in microseconds."""

REPAIR_BAR = 5.0
"""Maximum multiple of the time for the same call without a fault."""

EXPONENT_BAR, MEMORY_BAR = 1.05, 4.0
"""Maximum exponent of a stream's time by its length, and maximum peak memory as a multiple of the text's size."""

HOSTILE_BAR = 6.0
"""Maximum multiple of the time for four times the text (n^1.3; quadratic would be sixteen)."""

SLOW_S = 1.0
"""Tables that take this many seconds are measured only once."""

# Each builds a text of about the given number of characters.
HOSTILE: dict[str, Callable[[int], str]] = {
    "open tags": lambda size: "<tool_call>" * (size // 11),
    "open tags with a letter": lambda size: "<tool_call>x" * (size // 12),
    "open tags on lines": lambda size: "<tool_call>\n" * (size // 12),
    "close tags": lambda size: "</tool_call>" * (size // 12),
    "empty calls": lambda size: "<tool_call>{}</tool_call>" * (size // 25),
    "unclosed calls": lambda size: '<tool_call>{"name": "a' * (size // 22),
    "stray quotes": lambda size: '<tool_call>{"a": "}</tool_call>' * (size // 31),
    "brackets": lambda size: "<tool_call>" + "{" * size,
    "bare brackets": lambda size: "[" * size,
    "bare brackets on lines": lambda size: "\n{" * (size // 2),
    "bare keys on lines": lambda size: '\n{"name": ' * (size // 10),
    "bare calls": lambda size: '{"name": "write_file", "arguments": {}}\n' * (size // 41),
    "bare calls, then text": lambda size: '{"name": "write_file", "arguments": {}}\n' * (size // 41) + "text",
    "unclosed bare strings": lambda size: '\n{"name": "write_file", "arguments": {"a": "' * (size // 44),
    "quotes": lambda size: '<tool_call>{"name": "write_file", "arguments": {"path": "' + '"' * size + '"}}</tool_call>',
    "quotes and braces": lambda size: '<tool_call>{"name": "x", "arguments": {"a": "' + '"}' * (size // 2) + CLOSE,
    "quotes and commas": lambda size: '<tool_call>{"name": "x", "arguments": {"a": "' + '", ' * (size // 3) + CLOSE,
    "quotes and space": lambda size: '<tool_call>{"name": "x", "arguments": {"a": "' + '"    ' * (size // 5) + CLOSE,
    "a quote and much space": lambda size: (
        '<tool_call>{"name": "x", "arguments": {"a": "b"' + " " * size + "x}}" + CLOSE
    ),
    "quotes before braces": lambda size: (
        '<tool_call>{"name": "x", "a": "' + '"' * (size // 2) + "}" * (size // 2) + CLOSE
    ),
    "backslashes": lambda size: '<tool_call>{"name": "' + "\\" * size,
    "less-than signs": lambda size: "<" * size,
    "backticks": lambda size: "`" * size,
    "fences": lambda size: "```\n" * (size // 4),
    "tilde fences before a bracket": lambda size: "~~~\n" * (size // 4) + "\n{",
    "fences with calls": lambda size: '```json\n{"name": "write_file"}\n' * (size // 30),
    "spaces": lambda size: " " * size,
    "spaces after words": lambda size: "a b" + " " * size,
    "lines": lambda size: "a\n" * (size // 2),
    "spaces and lines": lambda size: "a " + "\n" * size,
    "think": lambda size: "<think>" * (size // 7),
    "think and calls": lambda size: "<think><tool_call>{}</tool_call>" * (size // 32),
    "think, calls, close": lambda size: "<think><tool_call>{}</think>" * (size // 28),
    "functions": lambda size: "<function=a>" * (size // 12),
    "functions in a value": lambda size: "<function=a><parameter=b>" + "\n<function=a>" * (size // 13),
    "parameters": lambda size: "<function=a>" + "<parameter=b>" * (size // 13),
    "parameters closed": lambda size: "<function=a>" + "<parameter=b>c</parameter>" * (size // 26),
    "close tags in a value": lambda size: "<function=a><parameter=b>" + "</parameter>\n" * (size // 13),
    "close tags and space": lambda size: "<function=a><parameter=b>" + ("</parameter>" + " " * 50) * (size // 62),
    "function close tags": lambda size: "<function=a><parameter=b>" + "</function></tool_call>" * (size // 23),
    "tools tags": lambda size: '<tools>\n{"a": 1}\n' * (size // 17),
    "sections that are only opened": lambda size: "<|think:end|><‖GCML‖tool_calls>" * (size // 31),
    "digits": lambda size: '<tool_call>{"name": "x", "arguments": {"n": ' + "1" * size + "}}" + CLOSE,
    "keys": lambda size: '<tool_call>{"name": "x", "arguments": {' + "a" * size,
    "comments": lambda size: '<tool_call>{"name": "x", /*' + "/*" * (size // 2) + CLOSE,
    "comment openers": lambda size: '<tool_call>{"name": "x"' + "/*a" * (size // 3) + CLOSE,
    "escaped newlines": lambda size: '<tool_call>{"name": "x"' + "\\n" * (size // 2) + CLOSE,
    "triple quotes": lambda size: '<tool_call>{"name": "x", "a": """' + "\\" * size + CLOSE,
    "python tags": lambda size: "<|python_tag|>" * (size // 14),
    "python tags with braces": lambda size: "<|python_tag|>{" * (size // 15),
}


@dataclass(slots=True)
class Table:
    """A table of results. ``missed``: the rows that exceed their limit, in words."""

    title: str
    columns: list[str]
    rows: list[list[str | float | None]] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def add(self, label: str, *figures: str | float | None) -> None:
        self.rows.append([label, *figures])
        print(_line(self.rows[-1]), flush=True)

    def begin(self) -> None:
        print(f"\n{self.title}\n\n{_line(self.columns)}\n|---|{'--:|' * (len(self.columns) - 1)}", flush=True)

    def expect(self, label: str, figure: float, bar: float) -> None:
        if figure > bar:
            self.missed.append(f"{label}: {figure:.2f} > {bar}")


def _line(cells: Iterable[str | float | None]) -> str:
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(value: str | float | None) -> str:
    match value:
        case None:
            return "-"
        case str():
            return value
        case _:
            return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def file_call(name: str, size: int, line: str = LINE) -> str:
    """Return a call in the format ``name`` that writes a file of about ``size`` characters."""
    content = (line * (size // len(line) + 1))[:size]
    return FORMATS[name].encode_calls([("write_file", {"path": "a.py", "content": content})])


def best_of(run: Callable[[], object], seconds: float = 0.08, batches: int = 3) -> float:
    times, best = 1, math.inf
    while batches:
        start = time.process_time()
        for _ in range(times):
            run()
        took = time.process_time() - start
        if took < seconds:
            times = min(times * 10, math.ceil(times * 1.5 * seconds / took) if took else times * 10)
            continue
        best = min(best, took / times)
        batches = 0 if took > SLOW_S else batches - 1
    return best


def pieces(text: str, size: int = DELTA) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


def read_pieces(text: str, size: int) -> None:
    read_stream(None, pieces(text, size))


def read_stream(name: str | None, arriving: Iterable[str]) -> None:
    parser = Parser(name, written_texts.TOOLS)
    for piece in arriving:
        parser.feed(piece)
    parser.close("stop")


# ------------------------------------------------------------------------ whole


def whole() -> Table:
    """Measure parsing whole answers with a call, in texts like models' texts."""
    texts = {
        "2 KB, one call": written_texts.answer(),
        "100 KB, one file write": written_texts.file_call("hermes", 100_000),
        "1 MB, no call": written_texts.markdown(1_000_000),
        "200 small calls": written_texts.small_calls(200),
    }
    tools = written_texts.TOOLS
    table = Table("Reading a call out of a whole answer, times the limit (str.find and orjson)", ["", *texts])
    table.begin()
    limits = {label: best_of(partial(find_and, orjson_loads(), text)) for label, text in texts.items()}
    readers: dict[str, Callable[[str], object]] = {
        "ours, format told": lambda text: parse(text, tools, "hermes"),
        "ours, any format": lambda text: parse(text, tools),
        **whole_readers(list(tools.values())),
    }
    for number, (name, read) in enumerate(readers.items()):
        ratios = {label: best_of(partial(read, text)) / limits[label] for label, text in texts.items()}
        table.add(name, *ratios.values())
        for label, ratio in ratios.items() if name.startswith("ours") else ():
            table.expect(f"{label}, {name}", ratio, WHOLE_BARS[label][number])
    return table


# ----------------------------------------------------------------------- repair


def repair_texts(size: int) -> tuple[str, dict[str, str]]:
    """Return a file's content, and by the name of each fault, a call with this fault that writes the file."""
    content = (QUOTING_LINE * (size // len(QUOTING_LINE) + 1))[:size]
    sound = file_call("hermes", size, QUOTING_LINE)
    return content, {
        "none": sound,
        "trailing comma": sound.replace('"}}', '",}}'),
        "raw line breaks": sound.replace("\\n", "\n"),
        "cut end": sound.replace('"}}', '"'),
        "unescaped quotes": sound.replace('\\"', '"'),
    }


def repair(size: int = 100_000) -> Table:
    """Measure a call of 100 KB with one fault, relative to the same call without it."""
    content, faulty = repair_texts(size)
    mending = repairers()
    columns = ["fault", "ours, any format", "ours, format told", *mending]
    table = Table(f"Reading a call of {size // 1000} KB with one fault, times ours without", columns)
    table.begin()
    readers: dict[str, Callable[[str], object]] = {
        "ours, any format": lambda text: parse(text, TOOLS).calls[0].arguments,
        "ours, format told": lambda text: parse(text, TOOLS, "hermes").calls[0].arguments,
        **{name: partial(_payload_arguments, loads) for name, loads in mending.items()},
    }
    sound_s = {name: best_of(partial(read, faulty["none"])) for name, read in readers.items()}
    unit = sound_s["ours, any format"]
    for label, text in faulty.items():
        figures: list[str | float | None] = []
        for name, read in readers.items():
            base = sound_s[name] if name.startswith("ours") else unit
            try:
                is_right = read(text) == {"path": "a.py", "content": content}
            except (ValueError, LookupError, TypeError):
                figures.append("fails")
                continue
            ratio = best_of(partial(read, text)) / base
            figures.append(ratio if is_right else f"{_cell(ratio)}, wrong")
            if name.startswith("ours"):
                table.expect(f"{label}, {name}", ratio if is_right else math.inf, REPAIR_BAR)
        table.add(label, *figures)
    return table


def _payload_arguments(loads: Callable[[str], object], text: str) -> object:
    (value,) = find_and(loads, text)
    return value["arguments"] if isinstance(value, dict) else value


# -------------------------------------------------------------------- streaming


def streaming(*, long: bool = False) -> Table:
    """Measure the microseconds per chunk of 4 characters in a call that writes a file, and their growth."""
    sizes = [1_000, 10_000, 100_000, 1_000_000, *([4_000_000] if long else [])]
    shown = [f"{size // 1000} KB" for size in sizes]
    table = Table(
        "Streaming: microseconds per 4-character delta of a call that writes a file; n^ is the growth of the total "
        "from 10 KB on; memory is the peak in sizes of the text (1 MB); the last columns are SGLang's detector",
        ["format", *shown, "n^", "memory", "SGLang 1 KB", "10 KB", "n^"],
    )
    table.begin()
    for name in (*FORMATS, None, "prose"):
        told = None if name == "prose" else name

        def text_of(size: int, name: str | None = name) -> str:
            return written_texts.markdown(size) if name == "prose" else written_texts.file_call(name or "hermes", size)

        times = {size: _per_delta(partial(read_stream, told), text_of(size)) for size in sizes}
        exponent = _exponent({size: per for size, per in times.items() if size >= 10_000})
        memory = peak(told, text_of(1_000_000))
        peer = _peer_times(sglang_stream(name, [TOOL]) if name in FORMATS else None, text_of)
        label = {"prose": "any format, prose", None: "any format, hermes"}.get(name, name)
        table.add(f"`{label}`" if name in FORMATS else str(label), *times.values(), exponent, memory, *peer)
        table.expect(f"{label}, microseconds per delta", max(times.values()), DELTA_BAR)
        table.expect(f"{label}, growth exponent", exponent, EXPONENT_BAR)
        table.expect(f"{label}, memory", memory, MEMORY_BAR)
    blank = [None] * (len(sizes) - 2)
    first, second, grown = _peer_times(jiter_stream(), lambda size: written_texts.file_call("hermes", size))
    table.add("accumulate + jiter", first, second, *blank, grown, None, None, None, None)
    return table


def _per_delta(read: Callable[[Iterable[str]], object], text: str, at_least: int = 250_000) -> float:
    """Return the microseconds per chunk. The text is split beforehand.

    A short text is parsed repeatedly, up to ``at_least`` characters, so that a busy machine affects all lengths
    equally.
    """
    cut = list(pieces(text))
    times = max(1, at_least // len(text))

    def run() -> None:
        for _ in range(times):
            read(cut)

    return best_of(run) / (times * len(cut)) * 1e6


def _exponent(per_delta: dict[int, float]) -> float:
    """Return the exponent of the total time's growth between the smallest and the largest size."""
    smallest, largest = min(per_delta), max(per_delta)
    return 1 + math.log(per_delta[largest] / per_delta[smallest]) / math.log(largest / smallest)


def _peer_times(
    read: Callable[[Iterable[str]], object] | None, text_of: Callable[[int], str]
) -> tuple[float | None, float | None, float | None]:
    """Return the microseconds per delta at 1 KB and at 10 KB, and the growth exponent."""
    if read is None:
        return None, None, None
    times = {size: _per_delta(read, text_of(size), at_least=0) for size in (1_000, 10_000)}
    return times[1_000], times[10_000], _exponent(times)


def peak(name: str | None, text: str) -> float:
    """Return the peak memory for parsing ``text`` in chunks, as a multiple of its size. Events are not stored."""
    read_stream(name, pieces(text[:1_000]))
    tracemalloc.start()
    try:
        read_stream(name, pieces(text))
        return tracemalloc.get_traced_memory()[1] / len(text.encode())
    finally:
        tracemalloc.stop()


# ---------------------------------------------------------------------- hostile


def hostile(size: int = 100_000) -> Table:
    """Measure how much longer parsing takes for four times as much text, with texts built to be slow."""
    table = Table(f"Hostile texts: times as long for {4 * size // 1000} KB as for {size // 1000} KB",
                  ["text", "ms", "whole", "4-character pieces"])  # fmt: skip
    table.begin()
    for label, build in HOSTILE.items():
        texts = build(size), build(4 * size)
        ratios = []
        for piece in (10**9, DELTA):
            small, large = (best_of(partial(read_pieces, text, piece), batches=2) for text in texts)
            ratios.append(large / max(small, 1e-4))
        table.add(label, large * 1e3, *ratios)
        table.expect(label, max(ratios), HOSTILE_BAR)
    return table


TABLES: dict[str, Callable[[], Table]] = {
    "whole": whole,
    "repair": repair,
    "streaming": streaming,
    "hostile": hostile,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(TABLES)}; default: all")
    parser.add_argument("--long", action="store_true", help="stream 4 MB too")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON at the end")
    options = parser.parse_args()
    if unknown := set(options.tables) - TABLES.keys():
        parser.error(f"no table {', '.join(unknown)}; there are: {', '.join(TABLES)}")
    makers: dict[str, Callable[[], Table]] = {**TABLES, "streaming": partial(streaming, long=options.long)}
    made = {name: makers[name]() for name in options.tables or TABLES}
    missed = [line for table in made.values() for line in table.missed]
    if options.json:
        print(json.dumps({name: asdict(table) for name, table in made.items()}, indent=1))
    print()
    for line in missed:
        print("MISSED", line)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
