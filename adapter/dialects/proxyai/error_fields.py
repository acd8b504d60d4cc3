"""Render errors as the fields defined by ProxyAI's document."""

from __future__ import annotations

from typing import Literal

from adapter.tools.tool import FailureRenderer


def make_error_renderer(key: str, **fields: str | Literal[False] | None) -> FailureRenderer:
    """Return a function that renders an error as JSON: the message under ``key``, and ``fields``, whose values are
    constants or names of the call's arguments to copy."""
    return lambda given, error: {**{name: each and given.get(each) for name, each in fields.items()}, key: str(error)}


FILE_ERROR = make_error_renderer("error", filePath="file_path")
