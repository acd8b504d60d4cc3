"""Runs the program of a tool that a user defined, without a shell, with paths that lead nowhere outside.

A path is resolved by the path gate, links included: it can be no device, pipe or
socket. The program, which runs in the workspace root, is given it as the model wrote
it where that is a plain relative path without links, ``..`` and characters that a
program may take for something else (``-f``, ``host:file``, ``key=value``, ``@file``);
else as ``./`` and its place below the root. Right before the
program starts the paths are resolved again and must come out the same. What
remains is the moment until the program itself opens them: another process that
swaps a directory for a link in that moment can lead it elsewhere.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable

from adapter.core.errors import ToolError
from adapter.core.program_lookup import find_program
from adapter.core.text.display_escaping import escape_for_display, replace_lone_surrogates
from adapter.tools.operations import PathValue, ProgramArgument, ProgramOutput, RunProgram
from adapter.workspace.paths.os_errors import os_errors_explained
from adapter.workspace.paths.resolved_path import require_existing
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.sandbox.child_process import ChildProcess, ProcessExit, Sink
from adapter.workspace.sandbox.log_slicing import LogSlice
from adapter.workspace.sandbox.output import HeadAndTail
from adapter.workspace.sandbox.sandbox import UNCONFINED, ActiveSandbox
from adapter.workspace.sandbox.shell import ending_notes, wait_for_exit

_PLAIN = re.compile(r"[\w.][\w./ ,+-]*")


def prepare(root: WorkspaceRoot, operation: RunProgram, confinement: ActiveSandbox = UNCONFINED) -> list[str]:
    """The program and its arguments as they will be run. Raises ToolError for a path outside the
    workspace or of a device, pipe or socket, a value that no program can take, and a program that is not there."""
    return [_found(root, operation.program, confinement), *(_argument(root, word) for word in operation.arguments)]


def run_program(
    root: WorkspaceRoot,
    operation: RunProgram,
    argv: list[str],
    echo: Callable[[str], object] | None,
    confinement: ActiveSandbox = UNCONFINED,
) -> ProgramOutput:
    """Run ``argv``, which `prepare` gave for ``operation`` and somebody may have approved since."""
    if prepare(root, operation, confinement) != argv:
        raise ToolError("a path changed what it leads to before the program was started; nothing was run. Try again")
    kept: HeadAndTail | LogSlice = LogSlice() if operation.slice_output else HeadAndTail()
    sink = _echoed(kept.add, echo) if operation.echo and echo is not None else kept.add
    with root.open_directory(".") as (directory, _), os_errors_explained("the program was not run"):
        command = ChildProcess(confinement.job(argv, ()), directory, sink)
    with command:
        finished = wait_for_exit(command, operation.timeout_s, operation.idle_timeout_s)
    ending = command.ending or ProcessExit(None)
    sliced = kept.sliced() if isinstance(kept, LogSlice) else None
    text = kept.text() if sliced is None else sliced.text
    return ProgramOutput(
        output=text,
        exit_code=ending.exit_code if finished else None,
        timed_out=not finished,
        skipped_lines=sliced.skipped if sliced else 0,
        patterns=sliced.patterns if sliced else (),
        notes=(*ending_notes(ending, finished), *confinement.notes(ending.exit_code, text)),
    )


def _found(root: WorkspaceRoot, program: str, confinement: ActiveSandbox) -> str:
    """Where the program is. Names are sought where no tool could have put one; paths start at the root."""
    if "/" in program and not program.startswith("/"):
        with root.locate(program) as place:
            require_existing(place)
            return _below_root(place.parts)
    found = find_program(program, confinement.search_path)
    if found is None:
        raise ToolError(
            f"the program {escape_for_display(program)!r} of this tool is not installed here; nothing was run. "
            "Use another tool, or ask the user to install it"
        )
    return found


def _argument(root: WorkspaceRoot, word: ProgramArgument) -> str:
    text = "".join(
        replace_lone_surrogates(piece) if isinstance(piece, str) else _resolved(root, piece) for piece in word
    )
    if "\0" in text:
        raise ToolError("an argument contains a NUL character, which no program can be given; nothing was run")
    return text


def _resolved(root: WorkspaceRoot, value: PathValue) -> str:
    with root.locate(value.path, parents="imagine") as place:
        if place.status is not None and not (place.is_file or place.is_directory):
            raise ToolError(
                f"{place.shown} is neither a regular file nor a directory (a device, pipe or socket): "
                "a program that opens it may wait for ever, so nothing was run. Give another path"
            )
        return value.path if _is_plain(value.path, place.parts) else _below_root(place.parts)


def _is_plain(path: str, parts: tuple[str, ...]) -> bool:
    """Whether a program takes ``path`` for the place that it was resolved to, and for nothing else."""
    return (
        _PLAIN.fullmatch(path) is not None and tuple(part for part in path.split("/") if part not in ("", ".")) == parts
    )


def _below_root(parts: tuple[str, ...]) -> str:
    return "/".join((".", *parts))


def _echoed(sink: Sink, echo: Callable[[str], object]) -> Sink:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def both(data: bytes) -> None:
        echo(decoder.decode(data))
        sink(data)

    return both
