"""Read chat templates from untrusted files, as a job of `adapter.workspace.sandbox.bounded_worker`.

This file must not import other modules of the package.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

MAX_FILE_BYTES = 64_000_000
"""Maximum size of a file with a template or a tokenizer's settings."""
MAX_TEMPLATE = 4_000_000
"""Maximum length of a template, in characters. The longest known templates have about ten thousand."""
MAX_TOKEN = 1_000
"""Maximum length of a token that is used, in characters."""

JINJA, SETTINGS = "chat_template.jinja", "tokenizer_config.json"
EXPECTED = f"a Jinja file, a {SETTINGS}, a folder with one or with {JINJA}, or a GGUF file"


def run(_: bytes, path: str) -> Iterator[Mapping[str, Any]]:
    """Yield one dict: the ``source``, ``tokens``, ``control`` tokens and ``response`` template of the file at ``path``,
    or the reason for a failure as ``fault``."""
    try:
        template = _load(Path(path))
        if len(template["source"]) > MAX_TEMPLATE:
            raise ValueError(f"the template has more than {MAX_TEMPLATE:,} characters")
        yield template
    except OSError as error:
        yield {"fault": f"cannot read the template {path}: {error.strerror}"}
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, struct.error) as error:
        yield {"fault": f"{path} has no chat template ({_explain(error)}); expected {EXPECTED}"}


def _explain(error: Exception) -> str:
    match error:
        case KeyError():
            return f"{error} is missing"
        case UnicodeDecodeError():
            return f"it is not valid UTF-8 (byte {error.object[error.start]:#04x} at position {error.start})"
        case _:
            return str(error)[:300]


def _load(path: Path) -> dict[str, Any]:
    if path.is_dir():
        return _load_folder(path)
    if path.exists() and not path.is_file():  # a pipe would block
        raise ValueError("it is not a regular file")
    with path.open("rb") as file:
        if file.read(4) == b"GGUF":
            return _load_gguf(file)
    if path.suffix == ".json":
        return _load_settings(path)
    return _build_template(_read_text(path), {})


def _load_folder(folder: Path) -> dict[str, Any]:
    settings = folder / SETTINGS
    if (folder / JINJA).is_file():
        known = _read_json(settings) if settings.is_file() else {}
        return _build_template(_read_text(folder / JINJA), known)
    if not settings.is_file():
        raise ValueError(f"it has neither {JINJA} nor {SETTINGS}")
    return _load_settings(settings)


def _load_settings(path: Path) -> dict[str, Any]:
    settings = _read_json(path)
    source = settings.get("chat_template", "" if _find_response_template(settings) else None)
    if isinstance(source, list):  # several templates by name: select the one for tools, like transformers
        named = {str(each.get("name")): each.get("template") for each in source if isinstance(each, dict)}
        source = named.get("tool_use") or named.get("default")
    if not isinstance(source, str):
        raise ValueError("chat_template has no text")
    return _build_template(source, settings)


def _build_template(source: str, settings: dict[str, Any]) -> dict[str, Any]:
    return {
        "source": source,
        "tokens": _list_tokens(settings),
        "control": _list_control_tokens(settings),
        "response": _find_response_template(settings),
    }


def _find_response_template(settings: dict[str, Any]) -> dict[str, Any] | None:
    """Return the response template, which describes the model's answers, or None. It is one key of the tokenizer's
    settings or, in a separate file, all of ``settings``."""
    found = settings if "fields" in settings else settings.get("response_template")
    return found if isinstance(found, dict) else None


def _list_tokens(settings: dict[str, Any]) -> dict[str, str]:
    """Return ``bos_token`` and similar tokens. A setting is a string, or an object with the string in ``content``."""
    tokens = {}
    for name, value in settings.items():
        text = value.get("content") if isinstance(value, dict) else value
        if name.endswith("_token") and isinstance(text, str) and len(text) <= MAX_TOKEN:
            tokens[name] = text
    return tokens


def _list_control_tokens(settings: dict[str, Any]) -> list[str]:
    """Return the ``special`` tokens of ``added_tokens_decoder``. The tokenizer first splits a prompt at these
    tokens."""
    added = settings.get("added_tokens_decoder")
    entries = [each for each in added.values() if isinstance(each, dict)] if isinstance(added, dict) else []
    texts = [each.get("content") for each in entries if each.get("special") is True]
    return [text for text in texts if isinstance(text, str) and len(text) <= MAX_TOKEN]


def _read_json(path: Path) -> dict[str, Any]:
    value = json.loads(_read_text(path))
    if not isinstance(value, dict):
        raise ValueError(f"{path.name} is not a JSON object")
    return value


def _read_text(path: Path) -> str:
    if path.stat().st_size > MAX_FILE_BYTES:
        raise ValueError(f"the file has more than {MAX_FILE_BYTES:,} bytes")
    return path.read_text(encoding="utf-8-sig")


# ------------------------------------------------------------------ GGUF

# https://github.com/ggml-org/ggml/blob/master/docs/gguf.md: the header is followed by keys and typed values.
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_KINDS = {"bos_token": "tokenizer.ggml.bos_token_id", "eos_token": "tokenizer.ggml.eos_token_id"}
_WORDS, _TYPES = "tokenizer.ggml.tokens", "tokenizer.ggml.token_type"
_SOURCE = "tokenizer.chat_template"
_CONTROL, _USER_DEFINED = 3, 4
"""Types of tokens, from ``llama_token_type`` in llama.h. llama.cpp splits a text at such tokens before it tokenizes the
text between them."""
MAX_ITEMS = 2_000_000
"""Maximum number of values in a GGUF file, and in a list."""


def _load_gguf(file: IO[bytes]) -> dict[str, Any]:
    version, _, count = struct.unpack("<IQQ", _read(file, 20))
    if version < 2 or count > MAX_ITEMS:
        raise ValueError(f"GGUF version {version} with {count:,} values is not supported; convert the model again")
    values: dict[str, Any] = {}
    for _ in range(count):
        key = _read_string(file)
        value = _read_value(file, _unpack(file, "I"), is_needed=key in (_WORDS, _TYPES))
        if key.startswith("tokenizer."):
            values[key] = value
    source = values[_SOURCE]
    if not isinstance(source, str):
        raise ValueError(f"{_SOURCE} is not text")
    words, types = (_to_list(values.get(key)) for key in (_WORDS, _TYPES))
    ids = {name: values.get(key) for name, key in _KINDS.items()}
    tokens = {name: words[at] for name, at in ids.items() if isinstance(at, int) and 0 <= at < len(words)}
    special = (word for word, kind in zip(words, types, strict=False) if kind in (_CONTROL, _USER_DEFINED))
    return {
        "source": source,
        "tokens": {name: word for name, word in tokens.items() if isinstance(word, str)},
        "control": [word for word in special if isinstance(word, str) and len(word) <= MAX_TOKEN],
    }


def _read_value(file: IO[bytes], kind: int, *, is_needed: bool) -> Any:
    if kind == _STRING:
        return _read_string(file)
    if kind != _ARRAY:
        return _unpack(file, _get_number(kind))
    inner, count = _unpack(file, "I"), _unpack(file, "Q")
    if count > MAX_ITEMS:
        raise ValueError(f"a list has {count:,} values; the maximum is {MAX_ITEMS:,}")
    if inner not in (_STRING, _ARRAY):
        size = struct.calcsize(_get_number(inner)) * count
        if is_needed:
            return list(struct.unpack(f"<{count}{_get_number(inner)}", _read(file, size)))
        file.seek(size, 1)
        return None
    values = [_read_value(file, inner, is_needed=is_needed) for _ in range(count)]
    return values if is_needed else None


def _to_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _get_number(kind: int) -> str:
    if kind not in _NUMBERS:
        raise ValueError(f"a value has the unknown type {kind}")
    return _NUMBERS[kind]


def _read_string(file: IO[bytes]) -> str:
    size = _unpack(file, "Q")
    if size > MAX_FILE_BYTES:
        raise ValueError(f"a string has {size:,} bytes; the maximum is {MAX_FILE_BYTES:,}")
    return _read(file, size).decode("utf-8", "replace")


def _unpack(file: IO[bytes], kind: str) -> Any:
    return struct.unpack(f"<{kind}", _read(file, struct.calcsize(kind)))[0]


def _read(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise ValueError("the file ends in the middle of a value")
    return data
