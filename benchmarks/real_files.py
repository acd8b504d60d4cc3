r"""Find real files to edit, by language, and pairs of versions of the same file.

Most machines have Python, C, YAML and Markdown. The rest comes from registries, unpacked into any folder that
``--sources`` names::

    apt-get download golang-github-spf13-cobra-dev golang-github-spf13-pflag-dev golang-golang-x-net-dev \
        golang-gopkg-yaml.v3-dev librust-regex-automata-dev librust-serde-json-dev librust-clap-lex-dev \
        librust-syn-dev librust-tokio-dev ansible
    for package in *.deb; do dpkg -x $package .; done
    for package in rxjs@7.8.2 rxjs@6.6.7 zod@4.6.7; do npm pack $package; done
    for package in *.tgz; do mkdir ${package%.tgz}; tar xzf $package -C ${package%.tgz}; done

Versions of the same file come from several Python installations, and from packages unpacked in two versions, such as
rxjs above.
"""

from __future__ import annotations

import os
import re
import sysconfig
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

LANGUAGES = {
    "python": (".py",),
    "rust": (".rs",),
    "typescript": (".ts", ".tsx"),
    "go": (".go",),
    "c": (".c", ".h"),
    "yaml": (".yaml", ".yml"),
    "markdown": (".md",),
}
MIN_BYTES, MAX_BYTES = 1_500, 60_000
MAX_FILES = 3_000
"""Maximum number of files of one language and root, because a tree of headers would dominate otherwise."""
_LANGUAGE_OF = {suffix: language for language, suffixes in LANGUAGES.items() for suffix in suffixes}
_SYSTEM = ("/usr/include", "/usr/lib/node_modules", "/usr/share/doc", "/usr/share/cargo", "/usr/share/gocode")
_VERSION = re.compile(r"[-@]?v?\d+(?:\.\d+)+")


def language_of(file: str) -> str:
    suffix = Path(file).suffix
    return _LANGUAGE_OF.get(suffix, suffix.removeprefix("."))


def real_files(roots: Sequence[Path], held_out: bool) -> dict[str, list[Path]]:
    """Return the files of each language. One file in three, selected by its name, is held out."""
    library = Path(sysconfig.get_path("stdlib"))
    installed = Path(sysconfig.get_path("purelib"))
    found: dict[str, list[Path]] = {language: [] for language in LANGUAGES}
    for root in (*roots, library, installed, *map(Path, _SYSTEM), Path(__file__).parent.parent):
        counts: dict[str, int] = defaultdict(int)
        for file in _walked(root):
            language = language_of(file.name)
            if counts[language] < MAX_FILES and is_held_out(file.name) == held_out:
                counts[language] += 1
                found[language].append(file)
    return {language: list(dict.fromkeys(files)) for language, files in found.items()}


def is_held_out(name: str) -> bool:
    return sum(name.encode()) % 3 == 0


def _walked(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in ("__pycache__", ".git", "pydoc_data", "encodings"))
        for name in sorted(names):
            file = Path(folder, name)
            if file.suffix in _LANGUAGE_OF and MIN_BYTES <= file.stat().st_size <= MAX_BYTES:
                yield file


def version_pairs(roots: Sequence[Path], held_out: bool) -> list[tuple[Path, Path]]:
    """Return pairs of an older and a newer version of the same file that differ."""
    versions: dict[str, list[Path]] = defaultdict(list)
    for root in (*roots, *_pythons()):
        for file in _walked(root):
            if is_held_out(file.name) == held_out:
                versions[f"{_VERSION.sub('', str(file.parent))}/{file.name}"].append(file)
    groups = (sorted(files, key=lambda file: _numbers(str(file.parent))) for files in versions.values())
    return [
        (older, newer)
        for files in groups
        for older, newer in pairwise(files)
        if older.read_bytes() != newer.read_bytes()
    ]


def _numbers(path: str) -> list[int]:
    return [int(number) for version in _VERSION.findall(path) for number in re.findall(r"\d+", version)]


def _pythons() -> list[Path]:
    library = Path(sysconfig.get_path("stdlib"))
    installations = library.parent.parent.parent
    return [
        path
        for path in sorted(installations.glob("*/lib/python3.*"))
        if _VERSION.search(str(path)) and _VERSION.sub("", str(path)) == _VERSION.sub("", str(library))
    ]
