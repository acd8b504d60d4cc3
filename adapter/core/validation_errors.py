"""Describe pydantic's validation errors in plain English."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from adapter.core.text.truncate import shorten

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

MAX_SHOWN = 200
"""Maximum length of an input value in a message, in characters."""
_REPLACEMENTS = (
    (r"^Value error, ", ""),
    (r"^Input should be (?=greater|less)", "must be "),
    (r"^(?:Input|String|Value|List|Dictionary|Tuple) should ", "must "),
    (r"a valid dictionary or instance of \w+|a valid dictionary or object.*|an object|a valid dictionary", "an object"),
    (r"a valid (string|integer|number|boolean|list|tuple)", r"a \1"),
    (r"\ba integer", "an integer"),
    (r", unable to (parse|interpret).*$", ""),
)
"""Patterns for pydantic's wording, with their replacements, applied in order."""


def explain_validation_error(error: ValidationError) -> str:
    """Describe the first problem of ``error``: ``'tools.0.name' is missing``."""
    return explain_error_detail(error.errors(include_url=False)[0])


def explain_error_detail(detail: ErrorDetails) -> str:
    """Describe one problem of a pydantic error."""
    path = shorten(".".join(map(str, detail["loc"])), MAX_SHOWN)
    context = detail.get("ctx") or {}
    match detail["type"]:
        case "missing":
            return f"{path!r} is missing"
        case "union_tag_not_found":
            return f"{str(context['discriminator']).strip(chr(39))!r} is missing"
        case "union_tag_invalid":
            return f"unknown kind {shorten(str(context['tag']), MAX_SHOWN)!r}; expected {context['expected_tags']}"
        case "extra_forbidden":
            return f"unknown key {path!r}"
        case "json_invalid":
            return f"it is not valid JSON: {context['error']}"
        case _:
            message = simplify_message(detail["msg"])
            return f"{path!r} {message}" if path else f"it {message}" if message.startswith("must") else message


def simplify_message(message: str) -> str:
    """Rewrite a pydantic message so that it can end a sentence."""
    for pattern, plain in _REPLACEMENTS:
        message = re.sub(pattern, plain, message)
    return message[:1].lower() + message[1:]
