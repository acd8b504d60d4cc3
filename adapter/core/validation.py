"""Plain words for the errors of pydantic, which describe data by the names of its own types."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

_PLAIN = (
    (r"^Value error, ", ""),
    (r"^Input should be (?=greater|less)", "must be "),
    (r"^(?:Input|String|Value|List|Dictionary|Tuple) should ", "must "),
    (r"a valid dictionary or instance of \w+|a valid dictionary or object.*|an object|a valid dictionary", "an object"),
    (r"a valid (string|integer|number|boolean|list|tuple)", r"a \1"),
    (r"\ba integer", "an integer"),
    (r", unable to parse.*$", ""),
)
"""Wordings of pydantic, and what replaces each."""


def explain(error: ValidationError) -> str:
    """Describe the first problem: ``'tools.0.name' is missing``."""
    return explain_detail(error.errors(include_url=False)[0])


def explain_detail(detail: ErrorDetails) -> str:
    """Describe one problem."""
    place = ".".join(map(str, detail["loc"]))
    context = detail.get("ctx") or {}
    match detail["type"]:
        case "missing":
            return f"{place!r} is missing"
        case "union_tag_not_found":
            return f"{str(context['discriminator']).strip(chr(39))!r} is missing"
        case "union_tag_invalid":
            return f"unknown kind {context['tag']!r}; expected {context['expected_tags']}"
        case "extra_forbidden":
            return f"unknown key {place!r}"
        case "json_invalid":
            return f"it is not JSON: {context['error']}"
        case _:
            message = plain_message(detail["msg"])
            return f"{place!r} {message}" if place else f"it {message}" if message.startswith("must") else message


def plain_message(message: str) -> str:
    """A message of pydantic without its own terms, as the end of a sentence."""
    for pattern, plain in _PLAIN:
        message = re.sub(pattern, plain, message)
    return message[:1].lower() + message[1:]
