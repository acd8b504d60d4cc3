"""A run over files: blocks go to processes and come back in order, and a run that was ended goes on where it was.

What is done so far stands in ``TARGET.partial``, and how much of it counts in ``OUT.progress``, which is replaced after
each block; a run that finds them leaves out the blocks that are done. A target appears under its name when it is whole.
The output is the same however often the run was ended, and by how many processes it is made.
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

from adapter.core.callbacks import observer
from adapter.core.errors import AdapterError, UsageError
from adapter.core.version import __version__
from adapter.integrations.batch import jsonl
from adapter.integrations.batch.inputs import Kind, Source
from adapter.integrations.batch.row_parser import RowParser, RowSettings
from adapter.integrations.batch.stats import BatchStats

if sys.platform != "win32":
    import fcntl

ProgressCallback: TypeAlias = Callable[[BatchStats], object]
"""Is told what is done so far, after each block."""
Block: TypeAlias = tuple[bytes, BatchStats]


@dataclass(slots=True)
class Progress:
    """``run``: what tells this run from others. ``target``: the file that is being written, of which ``blocks`` in
    ``size`` bytes are done. ``counts``: of all files so far."""

    run: str
    target: str = ""
    blocks: int = 0
    size: int = 0
    counts: BatchStats = field(default_factory=BatchStats)


def process_files(
    sources: Sequence[Source], out: str, settings: RowSettings, jobs: int = 1, told: ProgressCallback = lambda _: None
) -> BatchStats:
    """Read every row of ``sources`` by ``jobs`` processes.

    Raises UsageError where the output is there already, or is another run's, and AdapterError where a process dies.
    """
    told = observer(told, "told")
    RowParser(settings)  # what is wrong with them is said before anything begins
    if sources[0].target is None:
        return _to_stream(sources[0], settings, jobs, told)
    place = Path(f"{out.rstrip('/')}.progress")
    progress = _begun(sources, out, place, settings)
    with _Pool(settings, jobs) as pool:
        for source in sources:
            if source.target is not None and not source.target.exists():
                _to_file(source, source.target, pool, progress, place, told)
    place.unlink(missing_ok=True)
    return progress.counts


def _begun(sources: Sequence[Source], out: str, place: Path, settings: RowSettings) -> Progress:
    """The progress of an earlier run that this one goes on with, or none so far."""
    run = _identity(sources, settings)
    try:
        told = json.loads(place.read_bytes())
        progress = Progress(**{**told, "counts": BatchStats(**told["counts"])})
    except FileNotFoundError:
        if Path(out).exists():
            raise UsageError(f"{out} is there already; remove it, or name another --out") from None
        return Progress(run)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UsageError(f"{place} cannot be read ({error}); remove it and {out} to begin anew") from error
    if progress.run != run:
        raise UsageError(
            f"{place} is of a run with other input, options or version; finish that one, or remove it and {out}"
        )
    return progress


def _identity(sources: Sequence[Source], settings: RowSettings) -> str:
    files = [
        [str(source.path), (about := source.path.stat()).st_size, about.st_mtime_ns]
        if source.path
        else os.urandom(8).hex()
        for source in sources
    ]
    told = json.dumps([__version__, asdict(settings), files], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()


def _to_file(
    source: Source, target: Path, pool: _Pool, progress: Progress, place: Path, told: ProgressCallback
) -> None:
    partial = target.with_name(f"{target.name}.partial")
    target.parent.mkdir(parents=True, exist_ok=True)
    with partial.open("a+b") as file:
        _lock(file, partial)
        if progress.target != str(target) or file.seek(0, os.SEEK_END) < progress.size:
            progress.target, progress.blocks, progress.size = str(target), 0, 0
        file.truncate(progress.size)
        file.seek(0, os.SEEK_END)
        for data, counts in pool.read(source.kind, islice(_blocks(source), progress.blocks, None)):
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            progress.blocks += 1
            progress.size += len(data)
            progress.counts += counts
            _save(progress, place)
            told(progress.counts)
        _save(progress, place)
        if source.kind == "lines":
            partial.replace(target)
            return
        from adapter.integrations.batch import arrow

        if not progress.blocks and source.path:
            file.write(arrow.empty_table_like(source.path))
        whole = target.with_name(f"{target.name}.whole")
        arrow.write_parquet(file, whole)
        whole.replace(target)
        partial.unlink()


def _to_stream(source: Source, settings: RowSettings, jobs: int, told: ProgressCallback) -> BatchStats:
    done = BatchStats()
    with _Pool(settings, jobs) as pool:
        for data, counts in pool.read(source.kind, _blocks(source)):
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
            done += counts
            told(done)
    return done


def _blocks(source: Source) -> Iterator[bytes]:
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
    if sys.platform == "win32":
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise UsageError(f"another run is writing {partial}; wait for it, or name another --out") from error


def _save(progress: Progress, place: Path) -> None:
    new = place.with_name(f"{place.name}.new")
    new.write_text(json.dumps(asdict(progress)), encoding="utf-8")
    new.replace(place)


# ------------------------------------------------------------------ processes


class _Pool:
    """Processes that read blocks; this one alone where one is enough."""

    def __init__(self, settings: RowSettings, jobs: int) -> None:
        self._settings, self._jobs = settings, jobs
        self._executor: ProcessPoolExecutor | None = None

    def __enter__(self) -> _Pool:
        if self._jobs > 1:
            context = multiprocessing.get_context("spawn")
            self._executor = ProcessPoolExecutor(self._jobs, context, _begin)
        return self

    def __exit__(self, *_: object) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)

    def read(self, kind: Kind, blocks: Iterable[bytes]) -> Iterator[Block]:
        """The blocks read, in order. At most two a process are in memory."""
        if self._executor is None:
            yield from (_read(self._settings, kind, block) for block in blocks)
            return
        waiting: deque[Future[Block]] = deque()
        try:
            for block in blocks:
                waiting.append(self._executor.submit(_read, self._settings, kind, block))
                if len(waiting) >= 2 * self._jobs:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool as error:
            raise AdapterError(
                "a process that was reading ended, most likely for want of memory; the same command goes on where "
                "this one was, with fewer --jobs if it ends again"
            ) from error


def _read(settings: RowSettings, kind: Kind, block: bytes) -> Block:
    if kind == "lines":
        return jsonl.read_block(make_row_parser(settings), block)
    from adapter.integrations.batch import arrow

    return arrow.read_block(make_row_parser(settings), block)


@cache
def make_row_parser(settings: RowSettings) -> RowParser:
    return RowParser(settings)


def _begin() -> None:
    """In each process: Ctrl-C is for the one that asked, and its end, however it comes, is the end of this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asking = multiprocessing.parent_process()
    if asking is not None:
        threading.Thread(target=_end_after, args=(asking.sentinel,), daemon=True).start()


def _end_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
