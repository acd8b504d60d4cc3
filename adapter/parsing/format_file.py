r"""Format files: a `FormatSpec` as TOML. They let users add a format without writing Python.

::

    name = "my_model"
    body = "yaml"
    head = "<call>\nname: "
    middle = "\narguments:\n"
    tail = "\n</call>"
    indent = 2

Format files are untrusted: their size is limited, values are only strings and numbers, and nothing in them is executed.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from adapter.core.argument_checks import explain_read_error
from adapter.core.bounded_parsing import format_toml_literal, parse_toml
from adapter.core.errors import UsageError
from adapter.parsing.bodies.compiled_format import UnsupportedLayoutError
from adapter.parsing.bodies.format_compiler import compile_format
from adapter.parsing.format import Format
from adapter.parsing.format_spec import FormatSpec

MAX_BYTES = 50_000
"""Maximum size of a format file, in bytes."""
MAX_TEXT = 1_000
"""Maximum length of one string in a format file, in characters."""
MAX_ITEMS = 100
"""Maximum number of items in one list or table of a format file."""

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,60}")
_NEEDS_PAIRS = ("pairs", "function", "elements", "lines")
_SPEC = TypeAdapter(FormatSpec)


def read_format_file(path: object, known: Container[str] = ()) -> Format:
    """Read and compile the format file at ``path``. ``known`` are the names of existing formats, which must not be
    reused. Raises UsageError with the line and key of an error."""
    try:
        with Path(str(path)).open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error  # ValueError: a NUL in the path
        raise UsageError(f"cannot read the format file {str(path)!r}: {reason}") from error
    if len(content) > MAX_BYTES:
        raise UsageError(f"{path} is too large for a format file, whose maximum is {MAX_BYTES:,} bytes; shorten it")
    try:
        text = content.decode("utf-8-sig")
        spec = parse_format_file(text)
        if spec.name in known:
            raise ValueError(f"{_locate(text, 'name')}: {spec.name!r} is a built-in format; choose another name")
        return compile_format(spec)
    except UnsupportedLayoutError as error:
        raise UsageError(f"{path}: no parser supports this format: {error}") from error
    except ValueError as error:
        raise UsageError(f"{path}: {explain_read_error(error)}") from error


def parse_format_file(text: str) -> FormatSpec:
    """Return the specification in ``text``, the content of a format file. Raises ValueError if it is invalid."""
    values = parse_toml(text)
    _check_sizes(text, values)
    try:
        spec = _SPEC.validate_python(values)
    except ValidationError as error:
        raise ValueError(_explain(text, error)) from error
    if not _NAME.fullmatch(spec.name):
        where = _locate(text, "name")
        raise ValueError(f"{where}: expected at most 61 lower-case letters, digits and underscores, got {spec.name!r}")
    if (spec.pairs is not None) != (spec.body in _NEEDS_PAIRS):
        advice = (
            "requires a [pairs] table; add one" if spec.pairs is None else "does not allow a [pairs] table; remove it"
        )
        raise ValueError(f"{_locate(text, 'body')}: body {spec.body!r} {advice}")
    if spec.pairs is not None and "string" not in spec.pairs.openings:
        raise ValueError(f"{_locate(text, 'pairs.openings')}: add the key 'string', the marker before a string value")
    return spec


def write_format_file(spec: FormatSpec) -> str:
    """Return the text of a format file for ``spec``."""
    plain, tables = _render_lines(spec, "")
    return "\n".join([*plain, *tables]) + "\n"


def _render_lines(spec: object, prefix: str) -> tuple[list[str], list[str]]:
    """Return the fields of ``spec`` that differ from their defaults as TOML: the lines of its plain values, and the
    lines of the tables below them. ``prefix`` is the path of the table that contains the fields."""
    plain, tables = [], []
    for key, value in list_changed_fields(spec):
        if is_dataclass(value) or isinstance(value, Mapping):
            table = f"{prefix}{key}"
            inner, deeper = _render_lines(value, f"{table}.") if is_dataclass(value) else (_list_entries(value), [])
            tables += ["", f"[{table}]", *inner, *deeper]
        else:
            plain.append(f"{key} = {format_toml_literal(value)}")
    return plain, tables


def list_changed_fields(spec: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of fields that differ from their defaults."""
    for each in fields(spec):
        value = getattr(spec, each.name)
        if value != _get_default(each):
            yield each.name, value


def _get_default(field: Field[Any]) -> object:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _list_entries(table: Any) -> list[str]:
    return [f"{format_toml_literal(key)} = {format_toml_literal(value)}" for key, value in table.items()]


def _check_sizes(text: str, values: Mapping[str, Any], prefix: str = "") -> None:
    if len(values) > MAX_ITEMS:
        raise ValueError(
            f"{f'the table {prefix}' if prefix else 'the file'} has {len(values)} keys; the maximum is {MAX_ITEMS}"
        )
    for key, value in values.items():
        if isinstance(value, Mapping):
            _check_sizes(text, value, f"{prefix}{key}.")
        items = value if isinstance(value, list) else [value]
        if len(items) > MAX_ITEMS or any(isinstance(item, str) and len(item) > MAX_TEXT for item in [key, *items]):
            raise ValueError(
                f"{_locate(text, f'{prefix}{key}'[:60])}: at most {MAX_ITEMS} texts of {MAX_TEXT:,} characters allowed"
            )


def _explain(text: str, error: ValidationError) -> str:
    problems = []
    for detail in error.errors(include_url=False)[:5]:
        key = ".".join(str(part) for part in detail["loc"])
        if detail["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
            problems.append(f"{_locate(text, key)}: unknown key; {_explain_expected_keys(key)}")
        elif detail["type"] in ("missing", "missing_argument"):
            problems.append(f"the key {key!r} is missing")
        else:
            message = detail["msg"][:1].lower() + detail["msg"][1:]
            problems.append(f"{_locate(text, key)}: {message}, got {str(detail['input'])[:60]!r}")
    return "; ".join(problems)


def _explain_expected_keys(key: str) -> str:
    from difflib import get_close_matches

    known = [each.name for each in fields(FormatSpec)]
    near = get_close_matches(key, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"expected one of: {', '.join(known)}"


def _locate(text: str, path: str) -> str:
    """Return the location of the key ``path`` in ``text`` for an error message, such as ``line 3: head``."""
    key = next((part for part in reversed(path.split(".")) if not part.isdigit()), path)
    match = re.search(rf"^\s*\[?(?:[\w.]*\.)?[\"']?{re.escape(key)}[\"']?\s*[=\]]", text, re.MULTILINE)
    line = "" if match is None else f"line {text.count(chr(10), 0, match.end()) + 1}: "
    return f"{line}{path}"
