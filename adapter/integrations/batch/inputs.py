"""What is read, and where each file's rows go."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from adapter.core.errors import UsageError

Kind: TypeAlias = Literal["lines", "table"]

LINES, TABLES = (".jsonl", ".ndjson"), (".parquet", ".arrow")
STREAM = "-"
_LEFT_OUT = ("cache-", ".", "_")
"""Beginnings of names: files that datasets or Spark put beside the data."""


@dataclass(frozen=True, slots=True)
class Source:
    """``path``: None for standard input. ``target``: None for standard output."""

    path: Path | None
    target: Path | None
    kind: Kind


def find_sources(given: str, out: str) -> list[Source]:
    """The files of ``given`` (a file, a folder, ``-``), each with its place in ``out``. Raises UsageError for a pair
    that does not fit."""
    source = Path(given)
    if given != STREAM and source.is_dir():
        return _in_folder(source, out)
    kind: Kind = "lines" if given == STREAM else _kind(source)
    if kind == "lines" and out != STREAM and Path(out).suffix not in LINES:
        raise UsageError(f"JSON lines become JSON lines: name --out FILE.jsonl, or - for standard output, not {out!r}")
    if kind == "table" and Path(out).suffix != ".parquet":
        raise UsageError(f"{given} becomes a Parquet file: name --out FILE.parquet, not {out!r}")
    if given != STREAM and not source.is_file():
        raise UsageError(f"no file or folder at {given!r}")
    return [Source(None if given == STREAM else source, None if out == STREAM else Path(out), kind)]


def _in_folder(folder: Path, out: str) -> list[Source]:
    if out == STREAM or Path(out).suffix in (*LINES, *TABLES):
        raise UsageError(f"{folder} is a folder: --out must name one, too, not {out!r}")
    found = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix in (*LINES, *TABLES) and path.is_file() and not path.name.startswith(_LEFT_OUT)
    )
    if not found:
        raise UsageError(f"no {', '.join((*LINES, *TABLES))} files in {folder}")
    sources = [Source(path, _target(Path(out) / path.relative_to(folder)), _kind(path)) for path in found]
    if len({source.target for source in sources}) < len(sources):
        raise UsageError(f"files of {folder} differ only in .arrow and .parquet, and would become one; move some away")
    return sources


def _target(path: Path) -> Path:
    return path.with_suffix(".parquet") if path.suffix == ".arrow" else path


def _kind(path: Path) -> Kind:
    if path.suffix in LINES:
        return "lines"
    if path.suffix in TABLES:
        return "table"
    raise UsageError(f"{path} is none of {', '.join((*LINES, *TABLES))}, nor a folder of such files, nor -")
