"""Load chat templates from files, and render them in a worker process with limits.

A template file is Jinja (``*.jinja``), a ``tokenizer_config.json``, a folder with either, or a GGUF file.
`adapter.prompting.chat_template` is the sandbox; the operating system limits the worker's memory and processor time.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

from adapter.core.arguments import reason
from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.prompting import chat_template
from adapter.prompting.chat_template import ChatTemplate, ChatTemplateError

TIME_LIMIT_S = 5.0
"""Maximum processor time for one prompt, in seconds. A prompt with a hundred tools takes a few milliseconds."""
WALL_CLOCK_FACTOR = 1 if sys.platform == "win32" else 12
"""Wall-clock limit as a multiple of the processor time limit, to allow for busy machines. Windows can limit only the
wall-clock time."""
MAX_MEMORY_MB = 1_000
"""Memory limit of the worker. Python and Jinja need thirty megabytes."""
MAX_FILE_BYTES = 64_000_000
"""Maximum size of a file with a template or a tokenizer's settings."""

JINJA, SETTINGS = "chat_template.jinja", "tokenizer_config.json"


def load_chat_template(path: Path) -> ChatTemplate:
    """Load the template at ``path``. If there is none, raises UsageError, which lists the accepted files."""
    path = path.expanduser()
    try:
        if path.is_dir():
            return _load_folder(path)
        with path.open("rb") as file:
            if file.read(4) == b"GGUF":
                return _load_gguf(path)
        if path.suffix == ".json":
            return _load_settings(path)
        return ChatTemplate(_read_text(path))
    except UsageError:
        raise
    except OSError as error:
        raise UsageError(f"cannot read the template {path}: {error.strerror}") from error
    except (ValueError, KeyError, RecursionError, struct.error) as error:
        raise UsageError(f"{path} has no chat template ({reason(error)}); expected {_EXPECTED}") from error


_EXPECTED = f"a Jinja file, a {SETTINGS}, a folder with one or with {JINJA}, or a GGUF file"


def _load_folder(folder: Path) -> ChatTemplate:
    settings = folder / SETTINGS
    if (folder / JINJA).is_file():
        known = json.loads(_read_text(settings)) if settings.is_file() else {}
        return ChatTemplate(_read_text(folder / JINJA), _tokens(known), _control_tokens(known))
    if not settings.is_file():
        raise UsageError(f"{folder} has neither {JINJA} nor {SETTINGS}; expected {_EXPECTED}")
    return _load_settings(settings)


def _load_settings(path: Path) -> ChatTemplate:
    settings = json.loads(_read_text(path))
    source = settings.get("chat_template") if isinstance(settings, dict) else None
    if isinstance(source, list):  # several templates by name: select the one for tools, as transformers does
        named = {each["name"]: each["template"] for each in source}
        source = named.get("tool_use") or named.get("default")
    if not isinstance(source, str):
        raise ValueError("chat_template has no text")
    return ChatTemplate(source, _tokens(settings), _control_tokens(settings))


def _tokens(settings: JsonObject) -> dict[str, str]:
    """Return ``bos_token`` and similar tokens. Each setting is a string, or an object with the string in
    ``content``."""
    found = {}
    for name, value in settings.items():
        text = value.get("content") if isinstance(value, dict) else value
        if name.endswith("_token") and isinstance(text, str):
            found[name] = text
    return found


def _control_tokens(settings: JsonObject) -> tuple[str, ...]:
    """Return the ``special`` tokens in ``added_tokens_decoder``. The tokenizer splits a prompt at these tokens
    first."""
    added = settings.get("added_tokens_decoder")
    entries = [each for each in added.values() if isinstance(each, dict)] if isinstance(added, dict) else []
    return tuple(
        each["content"] for each in entries if each.get("special") is True and isinstance(each.get("content"), str)
    )


def _read_text(path: Path) -> str:
    if path.stat().st_size > MAX_FILE_BYTES:
        raise ValueError(f"the file has more than {MAX_FILE_BYTES:,} bytes")
    return path.read_text(encoding="utf-8")


# ------------------------------------------------------------------ GGUF

# https://github.com/ggml-org/ggml/blob/master/docs/gguf.md: the header is followed by keys and typed values.
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_KINDS = {"bos_token": "tokenizer.ggml.bos_token_id", "eos_token": "tokenizer.ggml.eos_token_id"}
_WORDS, _TYPES = "tokenizer.ggml.tokens", "tokenizer.ggml.token_type"
_CONTROL, _USER_DEFINED = 3, 4
"""Types of tokens at which llama.cpp splits text first: ``llama_token_type`` in its llama.h."""
_MAX_ITEMS = 2_000_000


def _load_gguf(path: Path) -> ChatTemplate:
    with path.open("rb") as file:
        _, version, _, count = struct.unpack("<4sIQQ", file.read(24))
        if version < 2 or count > _MAX_ITEMS:
            raise ValueError(f"GGUF version {version} with {count:,} values is not supported")
        found: dict[str, Any] = {}
        for _ in range(count):
            key = _read_string(file)
            value = _read_value(file, _unpack(file, "I"), is_needed=key in (_WORDS, _TYPES))
            if key.startswith("tokenizer."):
                found[key] = value
    words, types = found.get(_WORDS) or [], found.get(_TYPES) or []
    ids = {name: found[key] for name, key in _KINDS.items() if key in found}
    tokens = {name: words[number] for name, number in ids.items() if number < len(words)}
    special = (word for word, kind in zip(words, types, strict=False) if kind in (_CONTROL, _USER_DEFINED))
    return ChatTemplate(found["tokenizer.chat_template"], tokens, tuple(special))


def _read_value(file: IO[bytes], kind: int, *, is_needed: bool) -> Any:
    if kind == _STRING:
        return _read_string(file)
    if kind != _ARRAY:
        return _unpack(file, _NUMBERS[kind])
    inner, count = _unpack(file, "I"), _unpack(file, "Q")
    if count > _MAX_ITEMS:
        raise ValueError(f"a list has {count:,} values; the maximum is {_MAX_ITEMS:,}")
    if inner in _NUMBERS:
        size = struct.calcsize(_NUMBERS[inner]) * count
        if is_needed:
            return struct.unpack(f"<{count}{_NUMBERS[inner]}", file.read(size))
        file.seek(size, 1)
        return None
    values = [_read_value(file, inner, is_needed=is_needed) for _ in range(count)]
    return values if is_needed else None


def _read_string(file: IO[bytes]) -> str:
    size = _unpack(file, "Q")
    if size > MAX_FILE_BYTES:
        raise ValueError(f"a string has {size:,} bytes; the maximum is {MAX_FILE_BYTES:,}")
    return file.read(size).decode("utf-8", "replace")


def _unpack(file: IO[bytes], kind: str) -> Any:
    return struct.unpack(f"<{kind}", file.read(struct.calcsize(kind)))[0]


# ------------------------------------------------------------------ the worker


class TemplateWorker:
    """Render ``template`` in a worker process. The process starts with the first prompt, and ends on `close` or when
    this object is deleted."""

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
            return {"fault": f"the template was stopped: it took more than {self._time_limit_s:g} s"}
        return {"fault": f"the template was stopped: it took more than {MAX_MEMORY_MB:,} MB"}

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
