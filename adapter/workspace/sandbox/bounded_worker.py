"""Parse untrusted data in a separate process, with limits on time and memory.

A small web page, PDF or model file can cost its parser minutes, gigabytes or endless recursion, and raise nearly any
exception. A job therefore runs as ``python -I bounded_worker.py JOB SECONDS BYTES ARGUMENTS < data``. ``JOB`` is a
Python file that imports no module of this package, so that it starts fast; its ``run(data, *arguments)`` yields JSON
values. They are printed as lines, followed by the reason if the job ended early. The values printed before that are
used.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

MAX_MEMORY_BYTES = 400 << 20
"""Default memory limit of a job, in bytes."""
MAX_OUTPUT = 64 << 20
"""Maximum length of a job's values as JSON."""
START_S = 5.0
"""Additional wall-clock time to start the process, in seconds."""


@dataclass(frozen=True, slots=True)
class JobResult:
    """The values yielded by a job. ``stop_reason``: why it stopped early; "" if it completed."""

    values: tuple[Any, ...]
    stop_reason: str = ""


def run_bounded(
    job: str,
    data: bytes,
    *arguments: str,
    seconds: float,
    wall_seconds: float | None = None,
    max_bytes: int = MAX_MEMORY_BYTES,
) -> JobResult:
    """Run the file ``job`` on ``data``.

    Args:
        seconds: Limit of processor time.
        wall_seconds: Limit of wall-clock time, by default twice ``seconds`` plus a few seconds to start.
        max_bytes: Memory limit.
    """
    import subprocess

    argv, environment = _build_command(job, arguments, seconds, max_bytes)
    wall_s = 2 * seconds + START_S if wall_seconds is None else wall_seconds
    try:
        done = subprocess.run(
            argv,
            input=data,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            timeout=wall_s,
            check=False,
        )
        output = done.stdout
    except subprocess.TimeoutExpired as error:
        output = error.stdout or b""
    except OSError as error:
        return JobResult((), error.strerror or str(error))
    whole, _, _ = output.rpartition(b"\n")  # the last line may be cut off
    values = [json.loads(line) for line in whole.splitlines()]
    if values and isinstance(values[-1], dict) and "end" in values[-1]:
        return JobResult(tuple(values[:-1]), values[-1]["end"])
    return JobResult(tuple(values), f"it takes more than {min(seconds, wall_s):g} s")


class JobError(Exception):
    """Raised if a streamed job ends early. The message is the reason."""


def stream_bounded(
    job: str, *arguments: str | int, seconds: float, max_bytes: int = MAX_MEMORY_BYTES
) -> Generator[bytes, None, None]:
    """Run the file ``job`` without data, and yield its values, which are bytes, as they arrive.

    ``seconds``: limit of processor time for each value. ``max_bytes``: limit of memory. Closing the generator ends the
    process. Raises JobError if the job ends early.
    """
    import signal
    import subprocess

    argv, environment = _build_command(job, arguments, seconds, max_bytes)
    process = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )
    assert process.stdout is not None
    end = None
    with process, process.stdout as output:
        try:
            while (line := output.readline()).strip().isdigit():
                if len(value := output.read(int(line))) < int(line):
                    break
                yield value
            end = json.loads(line)["end"] if line.startswith(b"{") and line.endswith(b"\n") else None
        finally:
            process.kill() if end is None and process.poll() is None else process.wait()
    if end is None:
        is_late = process.returncode == -getattr(signal, "SIGXCPU", 0)
        end = f"it takes more than {seconds:g} s" if is_late else "its parser crashed"
    if end:
        raise JobError(end)


def _build_command(
    job: str, arguments: Sequence[str | int], seconds: float, max_bytes: int
) -> tuple[list[str], dict[str, str]]:
    """Return the command line of a job, and its environment."""
    import math
    import os

    limits = (str(math.ceil(seconds)), str(max_bytes))
    argv = [sys.executable, "-I", "-X", "utf8", __file__, job, *limits, json.dumps(arguments)]
    return argv, {name: value for name, value in os.environ.items() if name == "SYSTEMROOT"}  # Windows needs it


def main() -> None:
    """Run the job in this process. Its file, limits and arguments (as JSON) are this program's arguments."""
    from importlib.util import module_from_spec, spec_from_file_location

    _, file, seconds, max_bytes, arguments = sys.argv
    spec = spec_from_file_location("job", file)
    assert spec is not None
    assert spec.loader is not None
    job = module_from_spec(spec)
    try:
        spec.loader.exec_module(job)
        _limit_resource(int(seconds), int(max_bytes))
        end = _print(job.run(sys.stdin.buffer.read(), *json.loads(arguments)), int(seconds))
    except MemoryError:
        end = "it needs too much memory"
    except RecursionError:
        end = "it is nested too deeply"
    except BaseException as error:  # noqa: BLE001 - damaged files make parsers raise nearly anything
        end = f"{type(error).__name__}: {error}"[:500]
    print(json.dumps({"end": end}), flush=True)


def _print(values: Iterator[object], seconds: int) -> str:
    """Print the values. Return why some are missing, or ""."""
    size = 0
    for value in values:
        if isinstance(value, bytes):
            sys.stdout.buffer.write(b"%d\n" % len(value))
            sys.stdout.buffer.write(value)
            sys.stdout.buffer.flush()
            _limit_time(seconds)
            continue
        line = json.dumps(value)
        size += len(line)
        if size > MAX_OUTPUT:
            return f"it has more than {MAX_OUTPUT >> 20} MB of text"
        print(line, flush=True)
    return ""


def _limit_resource(seconds: int, max_bytes: int) -> None:
    _limit_time(seconds)
    _set_limit("CORE", 0)
    if sys.platform == "linux":
        _set_limit("DATA", max_bytes)


def _limit_time(seconds: int) -> None:
    """Grant ``seconds`` of additional processor time."""
    _set_limit("CPU", int(time.process_time()) + seconds)


def _set_limit(kind: str, limit: int) -> None:
    try:
        import resource
    except ImportError:  # Windows: the parent enforces a timeout
        return
    number = getattr(resource, f"RLIMIT_{kind}")
    _, hard = resource.getrlimit(number)
    resource.setrlimit(number, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


if __name__ == "__main__":
    main()
