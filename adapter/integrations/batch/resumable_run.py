"""Parse files of model output in blocks on several processes, keep the rows in order, and resume interrupted runs.

Finished blocks are written to ``TARGET.partial``. ``OUT.progress`` is replaced after each block, and records the valid
size of the partial file. A run that finds both files skips the finished blocks. A target gets its final name only when
it is complete. Neither an interruption nor the number of processes changes the output.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import islice
from multiprocessing.connection import wait
from pathlib import Path
from typing import BinaryIO, TypeAlias

from adapter.core.bounded_parsing import parse_json
from adapter.core.callback_checks import wrap_observer
from adapter.core.errors import AdapterError, UsageError
from adapter.core.file_lock import try_lock
from adapter.core.version import __version__
from adapter.integrations.batch import jsonl
from adapter.integrations.batch.input_and_target_files import InputFile, Kind
from adapter.integrations.batch.row_parser import RowParser, RowSettings
from adapter.integrations.batch.stats import BatchStats

ProgressCallback: TypeAlias = Callable[[BatchStats], object]
"""Called with the totals after each block."""
Block: TypeAlias = tuple[bytes, BatchStats]
"""The output for a block of rows, and its totals."""


@dataclass(slots=True)
class Progress:
    """The progress of a batch run, as stored in ``OUT.progress``."""

    run: str
    """Hash of the run's input and settings."""
    target: str = ""
    """Path of the current output file."""
    blocks: int = 0
    """Number of finished blocks in this file."""
    size: int = 0
    """Size of the finished blocks, in bytes."""
    counts: BatchStats = field(default_factory=BatchStats)
    """Totals of all files."""


def process_files(
    sources: Sequence[InputFile],
    out: str,
    settings: RowSettings,
    jobs: int = 1,
    on_progress: ProgressCallback = lambda _: None,
) -> BatchStats:
    """Parse all rows of ``sources`` with ``jobs`` processes, and return the totals. ``out`` is the output path.

    Raises UsageError if the output exists or belongs to another run, and AdapterError if a process dies.
    """
    on_progress = wrap_observer(on_progress, "on_progress")
    RowParser(settings)  # raise for invalid settings before anything starts
    if sources[0].target is None:
        return _write_stream(sources[0], settings, jobs, on_progress)
    progress_file = Path(f"{out.rstrip('/')}.progress")
    progress = _load_progress(sources, out, progress_file, settings)
    with _Pool(settings, jobs) as pool:
        for source in sources:
            if source.target is not None and not source.target.exists():
                _write_file(source, source.target, pool, progress, progress_file, on_progress)
    progress_file.unlink(missing_ok=True)
    return progress.counts


def _load_progress(sources: Sequence[InputFile], out: str, progress_file: Path, settings: RowSettings) -> Progress:
    """Load the progress of an earlier run to resume, or start a new one."""
    run = _hash_inputs(sources, settings)
    try:
        saved = parse_json(progress_file.read_bytes())
        progress = Progress(**{**saved, "counts": BatchStats(**saved["counts"])})
    except FileNotFoundError:
        if Path(out).exists():
            raise UsageError(f"{out} already exists; remove it, or choose another file with --out") from None
        return Progress(run)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(f"{progress_file} cannot be read ({error}); remove it and {out} to start over") from error
    if progress.run != run:
        raise UsageError(
            f"{progress_file} belongs to a run with different input, options or program version; "
            f"finish that run, or remove the file and {out}"
        )
    return progress


def _hash_inputs(sources: Sequence[InputFile], settings: RowSettings) -> str:
    files = [
        [str(source.path), (about := source.path.stat()).st_size, about.st_mtime_ns]
        if source.path
        else os.urandom(8).hex()
        for source in sources
    ]
    identity = json.dumps([__version__, asdict(settings), files], sort_keys=True)
    return hashlib.sha256(identity.encode()).hexdigest()


def _write_file(
    source: InputFile, target: Path, pool: _Pool, progress: Progress, progress_file: Path, on_progress: ProgressCallback
) -> None:
    partial = target.with_name(f"{target.name}.partial")
    target.parent.mkdir(parents=True, exist_ok=True)
    with partial.open("a+b") as file:
        _lock(file, partial)
        if progress.target != str(target) or file.seek(0, os.SEEK_END) < progress.size:
            progress.target, progress.blocks, progress.size = str(target), 0, 0
        file.truncate(progress.size)
        file.seek(0, os.SEEK_END)
        for data, counts in pool.read(source, islice(_list_blocks(source), progress.blocks, None)):
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            progress.blocks += 1
            progress.size += len(data)
            counts.size = source.compute_size(counts)
            progress.counts += counts
            _save_progress(progress, progress_file)
            on_progress(progress.counts)
        _save_progress(progress, progress_file)
        if source.output_kind == "lines":
            partial.replace(target)
            return
        from adapter.integrations.batch import arrow

        complete = target.with_name(f"{target.name}.whole")
        if source.kind == "lines":
            arrow.write_lines(file, complete)
        else:
            if not progress.blocks and source.path:
                file.write(arrow.build_empty_table(source.path))
            arrow.write_parquet(file, complete)
        complete.replace(target)
        partial.unlink()


def _write_stream(source: InputFile, settings: RowSettings, jobs: int, on_progress: ProgressCallback) -> BatchStats:
    total = BatchStats()
    with _Pool(settings, jobs) as pool:
        for data, counts in pool.read(source, _list_blocks(source)):
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
            counts.size = source.compute_size(counts)
            total += counts
            on_progress(total)
    return total


def _list_blocks(source: InputFile) -> Iterator[bytes]:
    if source.kind == "table":
        from adapter.integrations.batch import arrow

        assert source.path is not None
        yield from arrow.iter_batches(source.path)
    elif source.path is None:
        yield from jsonl.iter_blocks(sys.stdin.buffer)
    else:
        with source.path.open("rb") as file:
            yield from jsonl.iter_blocks(file)


def _lock(file: BinaryIO, partial: Path) -> None:
    if not try_lock(file.fileno()):
        raise UsageError(f"another run is writing {partial}; wait for it, or choose another file with --out")


def _save_progress(progress: Progress, progress_file: Path) -> None:
    new = progress_file.with_name(f"{progress_file.name}.new")
    new.write_text(json.dumps(asdict(progress)), encoding="utf-8")
    new.replace(progress_file)


# ------------------------------------------------------------------ processes


class _Pool:
    """Parses blocks on ``jobs`` processes, or in this process if ``jobs`` is 1."""

    def __init__(self, settings: RowSettings, jobs: int) -> None:
        self._settings, self._jobs = settings, jobs
        self._executor: ProcessPoolExecutor | None = None

    def __enter__(self) -> _Pool:
        if self._jobs > 1:
            context = multiprocessing.get_context("spawn")
            self._executor = ProcessPoolExecutor(self._jobs, context, _initialize_worker)
        return self

    def __exit__(self, *_: object) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)

    def read(self, source: InputFile, blocks: Iterable[bytes]) -> Iterator[Block]:
        """Yield the parsed blocks in the order of ``blocks``. At most two blocks per process are in memory."""
        kinds = source.kind, source.output_kind
        if self._executor is None:
            yield from (_read(self._settings, *kinds, block) for block in blocks)
            return
        pending: deque[Future[Block]] = deque()
        try:
            for block in blocks:
                pending.append(self._executor.submit(_read, self._settings, *kinds, block))
                if len(pending) >= 2 * self._jobs:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        except BrokenProcessPool as error:
            raise AdapterError(
                "a worker process ended, probably because memory ran out; run the same command to resume, with fewer "
                "--jobs if this happens again"
            ) from error


def _read(settings: RowSettings, kind: Kind, output_kind: Kind, block: bytes) -> Block:
    if kind == "lines":
        return jsonl.read_block(make_row_parser(settings), block)
    from adapter.integrations.batch import arrow

    read = arrow.read_block if output_kind == "table" else arrow.read_block_to_lines
    return read(make_row_parser(settings), block)


@cache
def make_row_parser(settings: RowSettings) -> RowParser:
    return RowParser(settings)


def _initialize_worker() -> None:
    """Initialize a worker process. It ignores Ctrl-C, which the parent handles, and exits when the parent exits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_exit_with_parent, args=(parent.sentinel,), daemon=True).start()


def _exit_with_parent(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
