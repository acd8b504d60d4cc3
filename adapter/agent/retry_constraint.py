"""Constrain the retry of a call to the tools that help and, for very small models, to known strings."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from adapter.agent.known_edit_texts import find_known_lines, find_named_values, require_texts
from adapter.conversation.guardrails.call_history import CallHistory
from adapter.conversation.guardrails.requested_file_changes import (
    find_change_tools,
    find_started_action,
    find_text,
)
from adapter.core.errors import UsageError
from adapter.core.events import JsonObject
from adapter.prompting.intent.text_values import find_paths
from adapter.tools.argument_synonyms import OLD_TEXT
from adapter.tools.tool_set import ToolSet

if TYPE_CHECKING:
    from adapter.backends.chat_client import ChatClient


def build_retry_constraint(client: ChatClient, format: str, history: CallHistory, tools: ToolSet) -> JsonObject:
    """Return the request fields that constrain an answer to a call of ``tools``. Return no fields if there are no
    tools, or if the server cannot constrain answers. ``format`` is the name of the call format."""
    from adapter.backends.constraint_fields import build_constraint_fields
    from adapter.backends.small_model_detection import invents_values

    if not tools:
        return {}
    is_small = invents_values(client.endpoint, client.model)
    choices = find_named_values(history, tools, is_small=is_small)
    tools = require_texts(tools) if is_small else tools
    with suppress(UsageError):  # the grammar is too large or empty, so do not constrain
        return build_constraint_fields(client.endpoint.kind, tools, choices, format=format)
    return {}


def build_no_call_constraint(client: ChatClient) -> JsonObject:
    """Return the request fields that forbid calls, or no fields if the server cannot constrain answers."""
    from adapter.backends.constraint_fields import build_no_call_fields

    return build_no_call_fields(client.endpoint.kind)


def build_edit_constraint(client: ChatClient, format: str, history: CallHistory, tools: ToolSet) -> JsonObject:
    """Return the request fields that constrain the next answer of a very small model, or no fields.

    If the last call completed the requested change, the answer cannot contain another call. If the last edit failed,
    the answer must be an edit of known text.
    """
    from adapter.backends.small_model_detection import invents_values

    last = history.recent[-1] if history.recent else None
    change_tools = find_change_tools(history, tools)
    is_change = last is not None and last.ok and last.changes
    is_made = is_change and not change_tools and find_started_action(history) != ""
    is_failed = last is not None and not last.ok and find_text(last, OLD_TEXT) != ""
    if not (is_made or is_failed) or not invents_values(client.endpoint, client.model):
        return {}
    if is_made:
        return build_no_call_constraint(client)
    is_known = any(find_known_lines(path, history) for path in find_paths(history.request))
    return build_retry_constraint(client, format, history, ToolSet([tools[name] for name in change_tools if is_known]))
