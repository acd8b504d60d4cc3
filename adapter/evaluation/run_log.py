"""Record every finished run as a JSON line, so that an interrupted evaluation can continue."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Self, TypeAlias

from adapter.core.bounded_parsing import parse_json
from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.core.file_lock import try_lock
from adapter.core.private_files import open_private
from adapter.evaluation.scenario import Scenario
from adapter.evaluation.scenario_runner import EvalRun

VERSION = 1
BEGIN = b'{"eval"'
Key: TypeAlias = tuple[str, str, int]
"""Identifies a run by the scenario's name, the tool-calling method's name, and the run's number."""


def hash_scenario(scenario: Scenario) -> str:
    """Return a hash of the scenario's messages and tools, which are the parts that the model sees."""
    visible = json.dumps([scenario.messages, list(scenario.tools)], sort_keys=True)
    return hashlib.sha256(visible.encode()).hexdigest()[:12]


class RunLog:
    """A file with an evaluation's finished runs, one per line. The first line is ``head``, the evaluation's settings.

    Opening the file removes an incomplete last line, which remains after a crash or on a full disk. Raises UsageError
    if the file is not a run log, has a different ``head``, or is being written by another process.
    """

    def __init__(self, path: Path, head: Mapping[str, Json]) -> None:
        self.path = path
        self.runs: dict[tuple[Key, str], EvalRun] = {}
        head = {"eval": VERSION, **head}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.fdopen(open_private(path, os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0)), "a+b")
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}. Choose another path with --results.") from error
        try:
            if not try_lock(self._file.fileno()):
                raise UsageError(
                    f"{path} is in use by another evaluation; wait for it, or choose another file with --results"
                )
            self._file.seek(0)
            complete, _, partial = self._file.read().rpartition(b"\n")
            lines = complete.splitlines()
            if lines or not partial:
                self._read(lines, head)
            elif not partial.startswith(BEGIN[: len(partial)]):
                raise UsageError(
                    f"{path} is not a run log: it begins with {partial[:40]!r}. Choose another file with --results."
                )
            self._file.truncate(len(complete) + 1 if lines else 0)
            if not lines:
                self._write(head)
        except BaseException:
            self._file.close()
            raise

    def get(self, scenario: Scenario, way: str, number: int) -> EvalRun | None:
        """Return the recorded run, or None if this version of the scenario has not been run.

        ``way`` is the name of the tool-calling method.
        """
        return self.runs.get(((scenario.name, way, number), hash_scenario(scenario)))

    def add(self, run: EvalRun, scenario: Scenario) -> None:
        self.runs[(run.scenario, run.way, run.number), hash_scenario(scenario)] = run
        self._write({"done": run.done, **asdict(run), "digest": hash_scenario(scenario)})

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, lines: list[bytes], head: Mapping[str, Json]) -> None:
        names = {each.name for each in fields(EvalRun)}
        for number, line in enumerate(lines, 1):
            try:
                row: JsonObject = parse_json(line)
                if number == 1:
                    self._check_head(row, head)
                    continue
                run = EvalRun(**{name: value for name, value in row.items() if name in names})
                self.runs[(run.scenario, run.way, run.number), row["digest"]] = run
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise UsageError(
                    f"{self.path}, line {number}, is not a valid evaluation run: {error}. Choose another file with "
                    "--results."
                ) from error

    def _check_head(self, row: JsonObject, head: Mapping[str, Json]) -> None:
        if row.get("eval") != VERSION:
            raise ValueError("the header is missing")
        if differing := [key for key, value in head.items() if row.get(key) != value]:
            key = differing[0]
            raise UsageError(
                f"{self.path} has runs with {key} {row.get(key)!r}, which cannot be combined with {head[key]!r}. "
                "Choose another file with --results."
            )

    def _write(self, row: Mapping[str, Json]) -> None:
        text = json.dumps(row, ensure_ascii=True)
        self._file.write(text.encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
