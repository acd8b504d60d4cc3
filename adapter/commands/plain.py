"""`adapter parse` as pipelines write it, understood without the library that reads command lines.

That library takes longer to load than a text takes to be read. A line that says anything else than the words below,
help and mistakes among it, is left to the library.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

OPTIONS = {"--format": "format", "--dialect": "dialect", "--finish-reason": "finish_reason", "--policy": "policy"}
"""Words that a value follows, and the argument of `parsed.show` that it is for."""
FLAGS = {"--json": "as_json"}


def plain_parse(words: Sequence[str]) -> dict[str, Any] | None:
    """The arguments of `parsed.show` that ``words``, after ``adapter parse``, say; None where they say more."""
    given: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        name = OPTIONS.get(word) or FLAGS.get(word) or "file"
        value = next(rest, None) if word in OPTIONS else word
        if name in given or value is None or (value.startswith("-") and value != "-" and word not in FLAGS):
            return None
        given[name] = True if word in FLAGS else value
    return given
