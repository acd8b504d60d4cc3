"""How much shorter outlines are than the files, and which functions they miss.

    python -m benchmarks.bench_index [DIRECTORY ...] [--files 20] [--show] [--download DIRECTORY]

Takes up to ``--files`` source files of 4 to 200 KB per language from the
directories (default: Python's library and what is installed in it), spread
over their packages; ``--download`` first puts the source packages listed below
into a directory, by npm, apt-get and pip. Nearly all languages are in them; for
Scala, of which these registries have no sources, give a directory. Tokens are counted
as a pre-tokenizer splits text: words with the blank before them, single digits, runs of
punctuation, runs of blanks. Python's functions and classes are compared with
``ast``, those of other languages with universal-ctags where it is installed, in
C and C++ prototypes too. What stands inside functions or in the value of a variable is
not declared to anyone, and a name in capitals in C is a macro's use that ctags
takes for a function; these are counted apart as "other". Exits with 1 when a
language is outlined by less than 70 % on the whole, or a function in 200 is missing.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from adapter.outline.extractor import outline
from adapter.outline.formatter import format_outline
from adapter.outline.languages import LANGUAGES, language_of
from adapter.tools.operations import FileOutline, OutlineItem

SIZES = range(4_000, 200_000)
REDUCTION_BAR = 70.0
MISSED_BAR = 0.005
_TOKEN = re.compile(r" ?[^\W\d_]+|\d| ?[^\w\s]+|_+|\s+")
PACKAGES = {
    "npm pack --silent {}": (
        *("rxjs", "react-native-paper", "react-native-windows@0.72", "expo-modules-core", "@capacitor/android"),
        *("@capacitor/ios", "argon2", "leveldown", "re2", "react-native-screens", "react-native-gesture-handler"),
        *("react-native-maps", "node-expat", "usb", "ffi-napi"),
    ),
    "apt-get download {}": (
        *("golang-github-spf13-cobra-dev", "golang-github-gorilla-mux-dev", "librust-serde-json-dev", "rake"),
        *("librust-regex-automata-dev", "ruby-rack", "ruby-sinatra", "php-symfony-console", "php-twig", "shunit2"),
        *("lua-penlight", "lua-busted", "lua-luassert", "lua-posix", "bash-completion", "bash-doc", "autoconf-archive"),
        *("dkms", "git", "initramfs-tools", "libfmt-dev", "libspdlog-dev", "nlohmann-json3-dev"),
    ),
    "pip download --quiet --no-deps --no-binary {0} {0}": ("hiredis", "lz4", "xxhash"),
}
CTAGS_KINDS = frozenset(
    {"function", "func", "method", "class", "interface", "struct", "enum", "trait", "protocol", "object"}
    | {"singletonMethod", "subroutine", "prototype"}
)
INSIDE = frozenset({"function", "func", "method", "member", "subroutine", "constructor", "anonymousFunction"})


def candidates(directories: Iterable[Path], count: int) -> dict[str, list[Path]]:
    """Per language ``count`` files, the same ones every time, from as many directories as there are."""
    found: dict[str, dict[Path, list[Path]]] = defaultdict(lambda: defaultdict(list))
    for directory in directories:
        for path in sorted(directory.rglob("*.*")):
            if language_of(path.name) and path.is_file() and path.stat().st_size in SIZES and not _is_left_out(path):
                language = language_of(path.name, path.read_text(encoding="utf-8", errors="replace"))
                assert language
                found[language.name][path.parent].append(path)
    return {name: _spread(parents, count) for name, parents in found.items()}


def _is_left_out(path: Path) -> bool:
    """Minified, generated and transpiled files, which nobody reads, ``.d.ts``, which are outlines already,
    and headers of Objective-C, a language that is not outlined."""
    head = path.read_bytes()[:100_000]
    if path.name.endswith((".d.ts", ".min.js")) or not {"dist", "esm5"}.isdisjoint(path.parts):
        return True
    if path.suffix == ".h" and re.search(rb"^@(?:interface|protocol|class)\b", head, re.MULTILINE):
        return True
    return b"generated" in head[:600].lower() or len(head) > 200 * (head.count(b"\n") + 1)


def _spread(parents: dict[Path, list[Path]], count: int) -> list[Path]:
    rng = random.Random(5)
    queues = [rng.sample(files, len(files)) for files in parents.values()]
    rng.shuffle(queues)
    chosen: list[Path] = []
    while queues and len(chosen) < count:
        for queue in queues:
            chosen.append(queue.pop())
        queues = [queue for queue in queues if queue]
    return chosen[:count]


def tokens(text: str) -> int:
    return sum(1 for _ in _TOKEN.finditer(text))


def download(directory: Path) -> None:
    """The packages unpacked in ``directory``; one that is not served is named and left out."""
    for command, packages in PACKAGES.items():
        for package in packages:
            place = directory / re.sub(r"\W+", "-", package)
            place.mkdir(parents=True, exist_ok=True)
            run = subprocess.run(command.format(package).split(), cwd=place, stdout=subprocess.DEVNULL, check=False)
            if run.returncode:
                print(f"{package} was not downloaded")
            for archive in place.iterdir():
                if archive.suffix == ".deb":
                    subprocess.run(["dpkg-deb", "-x", archive, place], check=True)
                elif archive.name.endswith((".tgz", ".tar.gz")):
                    shutil.unpack_archive(archive, place, filter="data")


def declared(text: str, path: Path) -> list[tuple[str, int, bool]] | None:
    """Names and lines of what the language's own tooling finds, and whether it stands inside a function.
    None without tooling."""
    if path.suffix in (".py", ".pyi"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return list(_declared_by_ast(ast.parse(text)))
            except SyntaxError:
                return None
    if not shutil.which("ctags"):
        return None
    command = [
        "ctags",
        "--output-format=json",
        "--fields=+nKsZ",
        "--kinds-C=+p",
        "--kinds-C++=+p",
        "-f",
        "-",
        str(path),
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    tags = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    functions = {_path(tag.get("scope", ""), tag["name"]) for tag in tags if tag.get("kind") in INSIDE}
    return [
        (tag["name"], tag["line"], any(_path(tag.get("scope", ""), "").startswith(each) for each in functions))
        for tag in tags
        if tag.get("kind") in CTAGS_KINDS
        and not tag["name"].startswith(("__anon", "anonymous", "Anonymous", "<lambda>", "Companion"))
    ] or None


def _path(scope: str, name: str) -> str:
    """``a::b`` and ``c``, or ``a.b`` and ``c``, as ``a/b/c/``."""
    return re.sub(r"::|\.|/+", "/", f"{scope}/{name}/".lstrip("/"))


def _declared_by_ast(node: ast.AST) -> Iterator[tuple[str, int, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child.name, child.lineno, False
        elif isinstance(child, ast.ClassDef):
            yield child.name, child.lineno, False
            yield from _declared_by_ast(child)
        else:
            yield from _declared_by_ast(child)


def missed(found: FileOutline, wanted: list[tuple[str, int, bool]]) -> tuple[list[tuple[str, int]], int]:
    """What the outline lacks, and how many more names it lacks that are inside functions and values, or macros."""
    names = {(name.text, name.line) for item in _all(found.items) for name in item.names}
    loose = {(text.rpartition(".")[2].rpartition(":")[2].strip("'\"#"), line) for text, line in names}
    texts = defaultdict(list)
    for item in _all(found.items):
        for line in range(item.start_line, item.start_line + 30):
            texts[line].append(item.text.replace(" ", ""))
    folded = [range(item.start_line, item.end_line + 1) for item in _all(found.items) if item.section == "tests"]
    leaves = {"consts", "fields"}
    has_macros = found.language in ("C", "C++")
    if not has_macros:  # with them, the grammar may take anything for a function
        leaves.add("fns")
    folded += [
        range(item.start_line + 1, item.end_line + 1)
        for item in _all(found.items)
        if item.section in leaves and not item.members
    ]
    lacking = [
        (name, line, inside or any(line in lines for lines in folded) or (has_macros and name.isupper()))
        for name, line, inside in wanted
        if (name, line) not in names | loose
        and not any(name.rpartition("::")[2].replace(" ", "") in text for text in texts[line])
    ]
    return [(name, line) for name, line, inside in lacking if not inside], sum(inside for *_, inside in lacking)


def _all(items: Iterable[OutlineItem]) -> Iterator[OutlineItem]:
    for item in items:
        yield item
        yield from _all(item.members)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("directories", nargs="*", type=Path)
    arguments.add_argument("--files", type=int, default=20)
    arguments.add_argument("--show", action="store_true", help="print what is missing and which files are long")
    arguments.add_argument("--download", type=Path, help="put the packages there, and measure them, too")
    given = arguments.parse_args()
    if given.download:
        download(given.download)
        given.directories.append(given.download)
    directories = given.directories or [Path(sysconfig.get_paths()["stdlib"])]
    chosen = candidates(directories, given.files)
    print("language     files   tokens   fewer  median   MB/s  known  other missed")
    failed = False
    for language in LANGUAGES:
        files = chosen.get(language.name, [])
        if not files:
            print(f"{language.name:12}     0")
            continue
        whole = short = known = other = absent = 0
        shares: list[float] = []
        seconds = 0.0
        size = 0
        for path in files:
            text = path.read_text(encoding="utf-8", errors="replace")
            table = language_of(path.name, text) or language
            start = time.process_time()
            found = outline(text, path.name, table)
            shown = format_outline(found)
            seconds += time.process_time() - start
            size += len(text)
            before, after = tokens(text), tokens(shown)
            whole, short = whole + before, short + after
            shares.append(100 * (1 - after / before))
            wanted = declared(text, path)
            lost, apart = missed(found, wanted or [])
            other += apart
            known += len(wanted or [])
            absent += len(lost)
            if given.show and (lost or shares[-1] < 60):
                print(f"    {path}: {shares[-1]:.0f} % fewer, missed {lost[:8]}, {list(found.notes)}")
        fewer = 100 * (1 - short / whole)
        median = sorted(shares)[len(shares) // 2]
        rate = size / seconds / 1e6
        print(
            f"{language.name:12} {len(files):5} {whole:8} {fewer:6.1f}% {median:6.1f}% {rate:6.1f} "
            f"{known:6} {other:6} {absent:6}"
        )
        failed = failed or fewer < REDUCTION_BAR or absent > MISSED_BAR * known
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
