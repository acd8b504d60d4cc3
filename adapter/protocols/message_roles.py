"""Check the roles of the messages in a request."""

from __future__ import annotations

from collections.abc import Sequence

from adapter.core.events import Json
from adapter.protocols.request_errors import RequestError

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
RESULT_ROLES = ("ipython", "observation")
"""Roles of tool results in the templates of Llama and GLM, which some clients send."""
_TEMPLATE_ROLES = ("control",)
"""Roles that only a model's template knows: Granite's switch for thinking."""


def check_roles(messages: Sequence[Json], start: int) -> None:
    """Raise RequestError for a message with an unknown role."""
    for index, message in enumerate(messages, start):
        role = message.get("role") if isinstance(message, dict) else None
        if isinstance(role, str) and role not in ROLES + RESULT_ROLES + _TEMPLATE_ROLES:
            path = f"messages[{index}].role"
            raise RequestError(f"{path} must be one of {', '.join(ROLES)}, got {role[:80]!r}", path)
