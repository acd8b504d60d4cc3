"""Run the program of a user-defined tool without a shell, and check that its path arguments are in the workspace.

Each path is resolved with its links, and must not be a device, pipe or socket. The program runs in the workspace root.
It gets the path as the model wrote it if that is a plain relative path, without links, ``..`` and characters with a
special meaning (``-f``, ``host:file``, ``key=value``, ``@file``); otherwise it gets ``./`` and the resolved path. Right
before the start, the paths are resolved again and must give the same result. One race remains: before the program opens
a path, another process can replace a directory in it with a link.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Callable

from adapter.core.errors import ToolError
from adapter.core.program_lookup import find_program
from adapter.core.text.display_escaping import escape_for_display, replace_lone_surrogates
from adapter.tools.operations import PathValue, ProgramArgument, ProgramOutput, RunProgram
from adapter.workspace.paths.os_errors import convert_os_errors
from adapter.workspace.paths.resolved_path import require_existing
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.paths.windows_paths import split_components
from adapter.workspace.sandbox.child_process import Sink, check_words
from adapter.workspace.sandbox.output_capture import DECODE_ERRORS, HeadAndTail
from adapter.workspace.sandbox.platform_processes import ChildProcess
from adapter.workspace.sandbox.problem_excerpt import ProblemExcerptBuilder
from adapter.workspace.sandbox.sandbox import UNSANDBOXED, ActiveSandbox
from adapter.workspace.sandbox.shell import list_ending_notes, wait_for_exit

_PLAIN = re.compile(r"[\w.][\w./ ,+-]*")


def build_program_argv(root: WorkspaceRoot, operation: RunProgram, sandbox: ActiveSandbox = UNSANDBOXED) -> list[str]:
    """Build the command line of a user-defined tool.

    Raises ToolError if the program is missing, if a path is outside the workspace or names a device, pipe or socket, or
    if a value cannot be passed to a program.
    """
    program = _find_program(root, operation.program, sandbox)
    return [program, *(_build_argument(root, word) for word in operation.arguments)]


def run_program(
    root: WorkspaceRoot,
    operation: RunProgram,
    argv: list[str],
    echo: Callable[[str], object] | None,
    sandbox: ActiveSandbox = UNSANDBOXED,
) -> ProgramOutput:
    """Run ``argv``, the command line built by `build_program_argv` for ``operation`` before approval."""
    if build_program_argv(root, operation, sandbox) != argv:
        raise ToolError("a path changed just before the program was started; nothing was run. Try again")
    log: HeadAndTail | ProblemExcerptBuilder = ProblemExcerptBuilder() if operation.slice_output else HeadAndTail()
    sink = _with_echo(log.add, echo) if operation.echo and echo is not None else log.add
    with root.open_directory(".") as (directory, _), convert_os_errors("the program was not run"):
        command = ChildProcess(sandbox.build_job(argv, ()), directory, sink)
    finished, ending = wait_for_exit(command, operation.timeout_s, operation.idle_timeout_s)
    excerpt = log.build_excerpt() if isinstance(log, ProblemExcerptBuilder) else None
    text = log.render_text() if excerpt is None else excerpt.text
    return ProgramOutput(
        output=text,
        exit_code=ending.exit_code if finished else None,
        timed_out=not finished,
        skipped_lines=excerpt.skipped if excerpt else 0,
        patterns=excerpt.patterns if excerpt else (),
        notes=(*list_ending_notes(ending, finished), *sandbox.list_notes(ending.exit_code, text)),
    )


def _find_program(root: WorkspaceRoot, program: str, sandbox: ActiveSandbox) -> str:
    """Return the program's path, from the workspace root if it is relative. A name is looked up only in directories of
    PATH that tools cannot write to."""
    if os.path.dirname(program) and not os.path.isabs(program):  # noqa: PTH120, PTH117 - as it is spelled
        with root.locate(program) as resolved:
            require_existing(resolved)
            return _join_below_root(resolved.parts)
    path = find_program(program, sandbox.search_path)
    if path is None:
        raise ToolError(
            f"the program {escape_for_display(program)!r} of this tool is not installed here; nothing was run. "
            "Use another tool, or ask the user to install it"
        )
    return path


def _build_argument(root: WorkspaceRoot, word: ProgramArgument) -> str:
    pieces = (replace_lone_surrogates(piece) if isinstance(piece, str) else _resolve(root, piece) for piece in word)
    text = "".join(pieces)
    check_words([text])
    return text


def _resolve(root: WorkspaceRoot, value: PathValue) -> str:
    with root.locate(value.path, parents="assume") as resolved:
        if resolved.status is not None and not (resolved.is_file or resolved.is_directory):
            raise ToolError(
                f"{resolved.display_path} is neither a regular file nor a directory (a device, pipe or socket): "
                "a program that opens it may block forever, so nothing was run. Give another path"
            )
        return value.path if _is_plain(value.path, resolved.parts) else _join_below_root(resolved.parts)


def _is_plain(path: str, parts: tuple[str, ...]) -> bool:
    """Return whether ``path`` can be passed to a program unchanged, and cannot be mistaken for an option."""
    return _PLAIN.fullmatch(path) is not None and split_components(path) == parts


def _join_below_root(parts: tuple[str, ...]) -> str:
    return "/".join((".", *parts))


def _with_echo(sink: Sink, echo: Callable[[str], object]) -> Sink:
    decoder = codecs.getincrementaldecoder("utf-8")(DECODE_ERRORS)

    def write_both(data: bytes) -> None:
        echo(decoder.decode(data))
        sink(data)

    return write_both
