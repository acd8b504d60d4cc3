"""Find the input files of a batch run, and the files that their results are written to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from adapter.core.errors import UsageError
from adapter.integrations.batch.stats import BatchStats

Kind: TypeAlias = Literal["lines", "table"]

LINES, TABLES = (".jsonl", ".ndjson"), (".parquet", ".arrow")
STREAM = "-"
"""Path that means standard input or output."""
_IGNORED_PREFIXES = ("cache-", ".", "_")
"""Prefixes of files that datasets or Spark writes next to the data."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """An input file, and the file for its results. ``path`` is None for standard input, ``target`` for standard
    output."""

    path: Path | None
    target: Path | None
    kind: Kind

    @property
    def output_kind(self) -> Kind:
        return "table" if self.target is not None and self.target.suffix == ".parquet" else "lines"

    @property
    def size(self) -> int | None:
        """Size in bytes, or None for standard input."""
        return self.path.stat().st_size if self.path else None

    def compute_size(self, block: BatchStats) -> int:
        """Return the size of the rows counted in ``block``, in bytes of this file. For a table, it is estimated from
        the average size of a row."""
        if self.kind == "lines" or self.path is None:
            return block.size
        from adapter.integrations.batch import arrow

        return self.path.stat().st_size * block.rows // max(1, arrow.count_rows(self.path))


def find_sources(input_path: str, out: str) -> list[InputFile]:
    """Return the input files with their targets in ``out``. Raises UsageError if the two cannot be combined."""
    source = Path(input_path)
    if input_path != STREAM and source.is_dir():
        return _list_folder(source, out)
    kind: Kind = "lines" if input_path == STREAM else _detect_kind(source)
    if out != STREAM and Path(out).suffix not in (*LINES, ".parquet"):
        raise UsageError(f"--out must be FILE.jsonl, FILE.parquet or - for standard output, got {out!r}")
    if input_path != STREAM and not source.is_file():
        raise UsageError(f"file or folder {input_path!r} not found")
    return [InputFile(None if input_path == STREAM else source, None if out == STREAM else Path(out), kind)]


def _list_folder(folder: Path, out: str) -> list[InputFile]:
    if out == STREAM or Path(out).suffix in (*LINES, *TABLES):
        raise UsageError(f"{folder} is a folder, so --out must also be a folder, got {out!r}")
    found = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix in (*LINES, *TABLES) and path.is_file() and not path.name.startswith(_IGNORED_PREFIXES)
    )
    if not found:
        raise UsageError(f"{folder} contains no {', '.join((*LINES, *TABLES))} files")
    sources = [InputFile(path, _get_target(Path(out) / path.relative_to(folder)), _detect_kind(path)) for path in found]
    if len({source.target for source in sources}) < len(sources):
        raise UsageError(
            f"{folder} has files whose names differ only in the suffixes .arrow and .parquet, so their outputs would "
            "have the same name; rename some of them"
        )
    return sources


def _get_target(path: Path) -> Path:
    return path.with_suffix(".parquet") if path.suffix == ".arrow" else path


def _detect_kind(path: Path) -> Kind:
    if path.suffix in LINES:
        return "lines"
    if path.suffix in TABLES:
        return "table"
    suffixes = ", ".join((*LINES, *TABLES))
    raise UsageError(f"{path} must be a file with the suffix {suffixes}, a folder of such files, or -")
