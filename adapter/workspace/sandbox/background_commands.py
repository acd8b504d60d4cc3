"""Run commands in the background while the conversation continues. Their unread output is limited in size."""

from __future__ import annotations

import threading
from contextlib import suppress

from adapter.core.errors import ToolError
from adapter.tools import operations as ops
from adapter.workspace.paths.os_errors import convert_os_errors
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.sandbox.child_process import ProcessSpec
from adapter.workspace.sandbox.output_capture import UnreadOutput
from adapter.workspace.sandbox.platform_processes import ChildProcess, build_shell_argv
from adapter.workspace.sandbox.sandbox import UNSANDBOXED, ActiveSandbox
from adapter.workspace.sandbox.shell import list_ending_notes
from adapter.workspace.sandbox.supervisor import GIVE_UP_S

MAX_RUNNING = 16
"""Maximum number of background commands at a time."""
MAX_REMEMBERED = 64
"""Maximum number of ended commands whose last output can still be read."""
_FILTER_TIMEOUT_S = 1.0


class _BackgroundCommand:
    """A command and the thread that reads its output."""

    def __init__(self, command: str, job: ProcessSpec, directory: int) -> None:
        self.stdout, self.stderr = UnreadOutput(), UnreadOutput()
        self._command = ChildProcess(job, directory, self.stdout.add, self.stderr.add)
        self._is_killed = False
        # A daemon thread does not keep the interpreter from exiting, and the exit ends the command.
        self._thread = threading.Thread(target=self._run, name=f"adapter: {command[:40]}", daemon=True)
        self._thread.start()

    @property
    def status(self) -> ops.CommandStatus:
        if self._thread.is_alive():
            return "running"
        return "terminated" if self._is_killed or self._command.ending is None else "completed"

    @property
    def exit_code(self) -> int | None:
        ending = self._command.ending
        return ending.exit_code if ending is not None and self.status == "completed" else None

    @property
    def notes(self) -> tuple[str, ...]:
        ending = self._command.ending
        return list_ending_notes(ending) if ending is not None and self.status == "completed" else ()

    def kill(self) -> None:
        self._is_killed = True
        self._command.stop()

    def join(self) -> None:
        self._thread.join(2 * GIVE_UP_S)

    def _run(self) -> None:
        with self._command as command, suppress(ToolError):  # `sh` always exists
            command.wait()


class BackgroundCommands:
    """The background commands of one workspace by id: ``shell_1``, ``shell_2`` and so on. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started = 0
        self._commands: dict[str, _BackgroundCommand] = {}

    def start(
        self, root: WorkspaceRoot, operation: ops.StartCommand, sandbox: ActiveSandbox = UNSANDBOXED
    ) -> ops.CommandStarted:
        """Start a command. Raises ToolError if its directory is missing or too many commands are running."""
        with self._lock:
            running = [id for id, each in self._commands.items() if each.status == "running"]
            if len(running) >= MAX_RUNNING:
                raise ToolError(
                    f"{len(running)} background commands are running, the maximum ({', '.join(running)}); "
                    "kill one first. Nothing was started"
                )
            with (
                root.open_directory(operation.cwd) as (directory, resolved),
                convert_os_errors("the command was not started"),
            ):
                job = sandbox.build_job(build_shell_argv(operation.command), resolved.parts)
                started = _BackgroundCommand(operation.command, job, directory)
            self._started += 1
            id = f"shell_{self._started}"
            self._commands[id] = started
            for old in [each for each in self._commands if each not in running and each != id][:-MAX_REMEMBERED]:
                del self._commands[old]
        return ops.CommandStarted(id, operation.command)

    def read(self, operation: ops.ReadCommandOutput) -> ops.CommandOutputDelta:
        """Return the output since the last read. Raises ToolError if the filter is invalid or too slow."""
        from adapter.core.text.safe_regex import clip_searched_part, compile_pattern

        pattern = compile_pattern(operation.filter) if operation.filter else None
        command = self._commands.get(operation.id)
        if command is None:
            return ops.CommandOutputDelta(operation.id, "", "", "not_found", notes=(self._list_ids(),))
        status = command.status  # read before the output, so that no final output is missed

        def is_selected(line: str) -> bool:
            part = clip_searched_part(pattern, line) if pattern else ""
            return pattern is None or pattern.search(part, timeout=_FILTER_TIMEOUT_S) is not None

        streams = (command.stdout, command.stderr)
        taken = [stream.take(is_final=status != "running", whole_lines=pattern is not None) for stream in streams]
        try:
            out, err = ("".join(filter(is_selected, text.splitlines(keepends=True))) for text in taken)
        except TimeoutError:
            raise ToolError(f"the filter {operation.filter!r} takes too long; use a simpler one") from None
        if status == "running":  # it may have ended since, but the output may be incomplete
            return ops.CommandOutputDelta(operation.id, out, err, status)
        return ops.CommandOutputDelta(operation.id, out, err, status, command.exit_code, notes=command.notes)

    def kill(self, operation: ops.KillCommand) -> ops.CommandKilled:
        command = self._commands.get(operation.id)
        if command is None:
            return ops.CommandKilled(operation.id, False, f"no background command {operation.id!r}. {self._list_ids()}")
        if command.status != "running":
            code = "" if command.exit_code is None else f" with exit code {command.exit_code}"
            return ops.CommandKilled(operation.id, False, f"{operation.id} had already ended{code}")
        command.kill()
        command.join()
        return ops.CommandKilled(operation.id, True, f"{operation.id} and all its processes were ended")

    def close(self) -> None:
        """End all commands and wait until they have ended."""
        with self._lock:
            running = [command for command in self._commands.values() if command.status == "running"]
            for command in running:
                command.kill()
            for command in running:
                command.join()

    def _list_ids(self) -> str:
        return f"Known ids: {', '.join(self._commands)}" if self._commands else "None was started in this session"
