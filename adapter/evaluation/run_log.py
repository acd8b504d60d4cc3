"""Every run as a line of JSON, written when it is over: what was stopped goes on from there."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias

from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.evaluation.runner import EvalRun
from adapter.evaluation.scenario import Scenario

if sys.platform != "win32":
    import fcntl

VERSION = 1
BEGIN = b'{"eval"'
Key: TypeAlias = tuple[str, str, int]
"""Scenario, way and number of a run."""


def digest(scenario: Scenario) -> str:
    """Changes with what a model is told of the scenario."""
    told = json.dumps([scenario.messages, list(scenario.tools)], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:12]


class RunLog:
    """The runs of one model with one sampling, in a file. ``head`` says which: another one's file is refused.

    A last line that was cut off, by a kill or a full disk, is taken away. Raises UsageError for what is no such file,
    for another's, and for one that somebody writes to.
    """

    def __init__(self, path: Path, head: Mapping[str, Json]) -> None:
        self.path = path
        self.runs: dict[tuple[Key, str], EvalRun] = {}
        head = {"eval": VERSION, **head}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+b")
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}. Choose another place with --results.") from error
        try:
            if sys.platform != "win32":
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._file.seek(0)
            whole, _, cut = self._file.read().rpartition(b"\n")
            lines = whole.splitlines()
            if lines or not cut:
                self._read(lines, head)
            elif not cut.startswith(BEGIN[: len(cut)]):
                raise UsageError(f"{path} holds something else: it begins with {cut[:40]!r}. Choose another --results.")
            self._file.truncate(len(whole) + 1 if lines else 0)
            if not lines:
                self._write(head)
        except BlockingIOError:
            self._file.close()
            raise UsageError(f"another eval is writing {path}; wait for it, or choose another --results") from None
        except BaseException:
            self._file.close()
            raise

    def get(self, scenario: Scenario, way: str, number: int) -> EvalRun | None:
        """The run, if there was one of this scenario as it is now."""
        return self.runs.get(((scenario.name, way, number), digest(scenario)))

    def add(self, run: EvalRun, scenario: Scenario) -> None:
        self.runs[(run.scenario, run.way, run.number), digest(scenario)] = run
        self._write({"done": run.done, **asdict(run), "digest": digest(scenario)})

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self, lines: list[bytes], head: Mapping[str, Json]) -> None:
        names = {each.name for each in fields(EvalRun)}
        for number, line in enumerate(lines, 1):
            try:
                row: JsonObject = json.loads(line)
                if number == 1:
                    self._compare(row, head)
                    continue
                run = EvalRun(**{name: value for name, value in row.items() if name in names})
                self.runs[(run.scenario, run.way, run.number), row["digest"]] = run
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise UsageError(
                    f"{self.path}, line {number} is no run of an eval: {error}. Choose another --results."
                ) from error

    def _compare(self, row: JsonObject, head: Mapping[str, Json]) -> None:
        if row.get("eval") != VERSION:
            raise ValueError("it does not begin as one")
        if other := [key for key, value in head.items() if row.get(key) != value]:
            key = other[0]
            raise UsageError(
                f"{self.path} has runs with {key} {row.get(key)!r}, not {head[key]!r}: they cannot be put together. "
                "Choose another --results."
            )

    def _write(self, row: Mapping[str, Json]) -> None:
        text = json.dumps(row, ensure_ascii=True)
        self._file.write(text.encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
