"""A chat template that the user names, as a file: read, and filled in a process of its own, within limits.

A template file is Jinja (``*.jinja``), a ``tokenizer_config.json``, a folder with either, or a GGUF file. What a
template may not do to us is in `adapter.prompting.chat_template`; what it must not do to the machine, run on and on or fill
the memory, the operating system prevents: its process has little memory and little time of the processor.
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
"""Of the processor, for one prompt: those of a hundred tools take some milliseconds."""

PATIENCE = 1 if sys.platform == "win32" else 12
"""Times longer by the clock: a machine that runs a model has little time for others. Windows has the clock alone."""

MAX_MEMORY_MB = 1_000
"""Of the process; Python and Jinja take thirty."""

MAX_FILE_BYTES = 64_000_000
"""Of a template or a tokenizer's settings."""

JINJA, SETTINGS = "chat_template.jinja", "tokenizer_config.json"


def load_chat_template(path: Path) -> ChatTemplate:
    """The template at ``path``. Raises UsageError for what holds none, and says what may be named."""
    path = path.expanduser()
    try:
        if path.is_dir():
            return _of_folder(path)
        with path.open("rb") as file:
            if file.read(4) == b"GGUF":
                return _of_gguf(path)
        if path.suffix == ".json":
            return _of_settings(path)
        return ChatTemplate(_text(path))
    except UsageError:
        raise
    except OSError as error:
        raise UsageError(f"cannot read the template {path}: {error.strerror}") from error
    except (ValueError, KeyError, RecursionError, struct.error) as error:
        raise UsageError(f"{path} holds no chat template ({reason(error)}); name {_WHAT}") from error


_WHAT = f"a Jinja file, a {SETTINGS}, a folder with one or with {JINJA}, or a GGUF file"


def _of_folder(folder: Path) -> ChatTemplate:
    settings = folder / SETTINGS
    if (folder / JINJA).is_file():
        known = json.loads(_text(settings)) if settings.is_file() else {}
        return ChatTemplate(_text(folder / JINJA), _tokens(known), _control_tokens(known))
    if not settings.is_file():
        raise UsageError(f"{folder} holds neither {JINJA} nor {SETTINGS}; name {_WHAT}")
    return _of_settings(settings)


def _of_settings(path: Path) -> ChatTemplate:
    settings = json.loads(_text(path))
    source = settings.get("chat_template") if isinstance(settings, dict) else None
    if isinstance(source, list):  # several by name: the one for tools, as transformers chooses
        named = {each["name"]: each["template"] for each in source}
        source = named.get("tool_use") or named.get("default")
    if not isinstance(source, str):
        raise ValueError("no text under chat_template")
    return ChatTemplate(source, _tokens(settings), _control_tokens(settings))


def _tokens(settings: JsonObject) -> dict[str, str]:
    """``bos_token`` and the like: a text, or an object with the text as its content."""
    found = {}
    for name, value in settings.items():
        text = value.get("content") if isinstance(value, dict) else value
        if name.endswith("_token") and isinstance(text, str):
            found[name] = text
    return found


def _control_tokens(settings: JsonObject) -> tuple[str, ...]:
    """Of ``added_tokens_decoder`` those that are ``special``, by whose texts a prompt is split."""
    added = settings.get("added_tokens_decoder")
    entries = [each for each in added.values() if isinstance(each, dict)] if isinstance(added, dict) else []
    return tuple(
        each["content"] for each in entries if each.get("special") is True and isinstance(each.get("content"), str)
    )


def _text(path: Path) -> str:
    if path.stat().st_size > MAX_FILE_BYTES:
        raise ValueError(f"more than {MAX_FILE_BYTES:,} bytes")
    return path.read_text(encoding="utf-8")


# ------------------------------------------------------------------ GGUF

# https://github.com/ggml-org/ggml/blob/master/docs/gguf.md: after the head come keys and values, each with its type.
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_KINDS = {"bos_token": "tokenizer.ggml.bos_token_id", "eos_token": "tokenizer.ggml.eos_token_id"}
_WORDS, _TYPES = "tokenizer.ggml.tokens", "tokenizer.ggml.token_type"
_CONTROL, _USER_DEFINED = 3, 4
"""Types of tokens that llama.cpp takes from the text before it splits that: ``llama_token_type`` in its llama.h."""
_MAX_ITEMS = 2_000_000


def _of_gguf(path: Path) -> ChatTemplate:
    with path.open("rb") as file:
        _, version, _, count = struct.unpack("<4sIQQ", file.read(24))
        if version < 2 or count > _MAX_ITEMS:
            raise ValueError(f"GGUF version {version} with {count:,} values")
        found: dict[str, Any] = {}
        for _ in range(count):
            key = _string(file)
            value = _value(file, _unpacked(file, "I"), is_kept=key in (_WORDS, _TYPES))
            if key.startswith("tokenizer."):
                found[key] = value
    words, types = found.get(_WORDS) or [], found.get(_TYPES) or []
    ids = {name: found[key] for name, key in _KINDS.items() if key in found}
    tokens = {name: words[number] for name, number in ids.items() if number < len(words)}
    special = (word for word, kind in zip(words, types, strict=False) if kind in (_CONTROL, _USER_DEFINED))
    return ChatTemplate(found["tokenizer.chat_template"], tokens, tuple(special))


def _value(file: IO[bytes], kind: int, *, is_kept: bool) -> Any:
    if kind == _STRING:
        return _string(file)
    if kind != _ARRAY:
        return _unpacked(file, _NUMBERS[kind])
    inner, count = _unpacked(file, "I"), _unpacked(file, "Q")
    if count > _MAX_ITEMS:
        raise ValueError(f"a list of {count:,} values")
    if inner in _NUMBERS:
        size = struct.calcsize(_NUMBERS[inner]) * count
        if is_kept:
            return struct.unpack(f"<{count}{_NUMBERS[inner]}", file.read(size))
        file.seek(size, 1)
        return None
    values = [_value(file, inner, is_kept=is_kept) for _ in range(count)]
    return values if is_kept else None


def _string(file: IO[bytes]) -> str:
    size = _unpacked(file, "Q")
    if size > MAX_FILE_BYTES:
        raise ValueError(f"a text of {size:,} bytes")
    return file.read(size).decode("utf-8", "replace")


def _unpacked(file: IO[bytes], kind: str) -> Any:
    return struct.unpack(f"<{kind}", file.read(struct.calcsize(kind)))[0]


# ------------------------------------------------------------------ the process


class TemplateWorker:
    """Fills ``template``. The process begins with the first prompt, and ends with `close` or when nobody has this."""

    def __init__(self, template: ChatTemplate, time_limit_s: float = TIME_LIMIT_S) -> None:
        self.template = template
        self._time_limit_s = time_limit_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._spent_s = self._spent_before_s = 0.0

    @property
    def spent_s(self) -> float:
        """Seconds of the processor that all prompts took so far."""
        return self._spent_before_s + self._spent_s

    def render(
        self,
        messages: Sequence[Mapping[str, Json]],
        tools: Sequence[Json] = (),
        variables: Mapping[str, Json] | None = None,
        *,
        add_generation_prompt: bool = True,
    ) -> str:
        """The prompt. Raises TemplateFault, also where the template takes too long or too much."""
        asked = {
            "source": self.template.source,
            "tokens": dict(self.template.tokens),
            "messages": [dict(message) for message in messages],
            "tools": list(tools),
            "variables": dict(variables or {}),
            "add_generation_prompt": add_generation_prompt,
        }
        with self._lock:
            answer = self._answer(json.dumps(asked))
        if "prompt" not in answer:
            raise ChatTemplateError(answer["fault"])
        return str(answer["prompt"])

    def _answer(self, line: str) -> JsonObject:
        if self._process is None:
            self._process = _started(self._time_limit_s)
            self._finalizer = weakref.finalize(self, _ended, self._process)
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        is_late = threading.Event()

        def end() -> None:
            is_late.set()
            process.kill()

        watch = threading.Timer(PATIENCE * self._time_limit_s, end)
        watch.start()
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            said = process.stdout.readline()
        except OSError:
            said = ""
        finally:
            watch.cancel()
        if said.endswith("\n"):
            answer: JsonObject = json.loads(said)
            self._spent_s = answer["spent_s"]
            return answer
        self._end()
        if is_late.is_set() or process.returncode == _OUT_OF_TIME:
            self._spent_before_s += self._time_limit_s
            return {"fault": f"the template took more than {self._time_limit_s:g} s: it was stopped"}
        return {"fault": f"the template took more than {MAX_MEMORY_MB:,} MB: it was stopped"}

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
"""What a process ends with that had all of its time."""


def _ended(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


_NEEDED = {name: value for name, value in os.environ.items() if name == "SYSTEMROOT"}
"""Without it Python does not start on Windows."""


def _started(time_limit_s: float) -> subprocess.Popen[str]:
    """With nothing of ours in its surroundings: no keys, no open files."""
    assert chat_template.__file__ is not None
    return subprocess.Popen(
        [sys.executable, "-P", chat_template.__file__, str(MAX_MEMORY_MB), str(time_limit_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
        env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUTF8": "1"} | _NEEDED,
        start_new_session=True,  # Ctrl-C at the terminal is for us
    )
