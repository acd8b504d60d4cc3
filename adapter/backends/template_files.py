"""Load chat templates from files, and render them in a worker process with limits.

A template file is Jinja (``*.jinja``), a ``tokenizer_config.json``, a directory with either, or a GGUF file.
`adapter.prompting.chat_template` is the sandbox; the operating system limits the worker's memory and processor time.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.prompting import chat_template
from adapter.prompting.chat_template import ChatTemplate, ChatTemplateError
from adapter.protocols.template_prompt import RenderTemplate, TemplatePromptError

TIME_LIMIT_S = 5.0
"""Maximum processor time for one prompt, in seconds. A prompt with a hundred tools takes a few milliseconds."""
WALL_CLOCK_FACTOR = 1 if sys.platform == "win32" else 12
"""Wall-clock limit as a multiple of the processor time limit. It is larger, because a machine may be busy. On Windows,
only the wall-clock time can be limited."""
MAX_MEMORY_MB = 1_000
"""Memory limit of the worker, in megabytes. Python and Jinja need thirty."""
LOAD_SECONDS = 5.0
"""Maximum processor time to read a template file, in seconds. A GGUF file with 150,000 tokens takes half a second."""
READER = str(Path(__file__).with_name("template_file_reader.py"))


def load_chat_template(path: Path) -> ChatTemplate:
    """Load the template at ``path`` in a process with limits. Raises UsageError if it contains no template."""
    from adapter.workspace.sandbox.bounded_worker import run_bounded

    path = path.expanduser()
    result = run_bounded(READER, b"", str(path), seconds=LOAD_SECONDS)
    found: JsonObject = (
        result.values[0] if result.values else {"fault": f"{path} has no chat template ({result.stop_reason})"}
    )
    if "fault" in found:
        raise UsageError(found["fault"])
    return ChatTemplate(found["source"], found["tokens"], tuple(found["control"]), found.get("response"))


def run_render_step(step: RenderTemplate, template: TemplateWorker | None) -> str:
    """Render the prompt of ``step`` with the user's template. Raises TemplatePromptError if that is not possible."""
    if template is None:
        raise TemplatePromptError("no chat template was given; pass one with --template")
    try:
        return template.render(step.messages, step.tools, step.variables)
    except ChatTemplateError as error:
        raise TemplatePromptError(str(error)) from error


# ------------------------------------------------------------------ the worker


class TemplateWorker:
    """Renders ``template`` in a worker process, from the first prompt until `close` or the deletion of this object."""

    def __init__(self, template: ChatTemplate, time_limit_s: float = TIME_LIMIT_S) -> None:
        self.template = template
        self._time_limit_s = time_limit_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._spent_s = self._spent_before_s = 0.0

    @property
    def spent_s(self) -> float:
        """Processor time spent on all prompts so far, in seconds."""
        return self._spent_before_s + self._spent_s

    def render(
        self,
        messages: Sequence[Mapping[str, Json]],
        tools: Sequence[Json] = (),
        variables: Mapping[str, Json] | None = None,
        *,
        add_generation_prompt: bool = True,
    ) -> str:
        """Render a prompt. Raises ChatTemplateError if the template fails, or exceeds its time or memory limit."""
        request = {
            "source": self.template.source,
            "tokens": dict(self.template.tokens),
            "messages": [dict(message) for message in messages],
            "tools": list(tools),
            "variables": dict(variables or {}),
            "add_generation_prompt": add_generation_prompt,
        }
        with self._lock:
            answer = self._send(json.dumps(request))
        if "prompt" not in answer:
            raise ChatTemplateError(answer["fault"])
        return str(answer["prompt"])

    def _send(self, line: str) -> JsonObject:
        if self._process is None:
            self._process = _start_process(self._time_limit_s)
            self._finalizer = weakref.finalize(self, _kill, self._process)
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        is_late = threading.Event()

        def end() -> None:
            is_late.set()
            process.kill()

        timer = threading.Timer(WALL_CLOCK_FACTOR * self._time_limit_s, end)
        timer.start()
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            response = process.stdout.readline()
        except OSError:
            response = ""
        finally:
            timer.cancel()
        if response.endswith("\n"):
            answer: JsonObject = json.loads(response)
            self._spent_s = answer["spent_s"]
            return answer
        self._end()
        if is_late.is_set() or process.returncode == _OUT_OF_TIME:
            self._spent_before_s += self._time_limit_s
            return {"fault": f"the template was stopped, because it took more than {self._time_limit_s:g} s"}
        return {"fault": f"the template was stopped, because it took more than {MAX_MEMORY_MB:,} MB of memory"}

    def close(self) -> None:
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._finalizer()
            self._process = None
            self._spent_before_s, self._spent_s = self.spent_s, 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_OUT_OF_TIME = None if sys.platform == "win32" else -signal.SIGXCPU
"""Return code of a process that exceeded its time limit."""


def _kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


_NEEDED = {name: value for name, value in os.environ.items() if name == "SYSTEMROOT"}
"""The environment variables that Python requires on Windows."""


def _start_process(time_limit_s: float) -> subprocess.Popen[str]:
    """Start a process without this process's open files and environment, which may contain keys."""
    assert chat_template.__file__ is not None
    return subprocess.Popen(
        [sys.executable, "-P", chat_template.__file__, str(MAX_MEMORY_MB), str(time_limit_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
        env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUTF8": "1"} | _NEEDED,
        start_new_session=True,  # Ctrl-C at the terminal must not reach the worker
    )
