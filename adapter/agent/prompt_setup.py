"""How an agent's model is told of its tools: by its own template, or in words, in which style, and held to what."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from adapter.backends.client_lookup import as_chat_client
from adapter.backends.template_chat import TemplateChat
from adapter.core.errors import ToolError, UsageError
from adapter.core.events import JsonObject
from adapter.grammars.constraint_mode import Constraint
from adapter.parsing.format import Format
from adapter.prompting.intent.assist import AssistSettings
from adapter.prompting.system_prompt import Style
from adapter.protocols.template_prompt import PROMPT_MODES
from adapter.tools.operations import Glob, PathList
from adapter.tools.tool import Tool, ToolSet
from adapter.workspace import Workspace

if TYPE_CHECKING:
    from adapter.backends.chat_client import ChatClient

MAX_KNOWN_FILES = 2_000
"""Paths of the workspace that are looked up for a very small model."""


def prompt_style_for(constraint: Constraint | None) -> Style:
    """How tools are described: where calls are enforced without an example, whose values small models copy."""
    return "bare" if constraint in ("prefer", "required") else "compact"


def validate_prompt_mode(prompt: str) -> None:
    """Raises UsageError for none of `PROMPT_MODES`."""
    if prompt not in PROMPT_MODES:
        raise UsageError(f"unknown prompt {prompt!r}; expected {', '.join(PROMPT_MODES)}")


def format_from_template(chat: object, prompt: str) -> str | None:
    """The format derived from the template of the model behind ``chat``, where no table reads what that writes."""
    client = as_chat_client(chat)
    told = client.own_prompt().recognised if client is not None and prompt != "words" else None
    return told.format if told is not None and told.by == "template" else None


def make_template_chat(chat: object, tools: ToolSet, format: str | Format, prompt: str) -> TemplateChat | None:
    """How ``chat`` gets the prompts of the model's own template; None for words. ``prompt``: one of `PROMPT_MODES`.

    Raises UsageError for ``own`` where that cannot be had.
    """
    validate_prompt_mode(prompt)
    client = as_chat_client(chat)
    found = client.own_prompt() if client is not None and prompt != "words" else None
    if prompt == "own" and (found is None or found.own is None):
        raise UsageError(
            f"the model's own prompt cannot be had: {found.explanation if found else 'this is no ChatClient'}"
        )
    return TemplateChat(tools, format, found.own) if found is not None and found.own is not None else None


def known_files(workspace: Workspace) -> Sequence[str]:
    """Return the files of a workspace, which a request may name."""
    with suppress(ToolError):
        found = workspace.read(Glob("**/*", limit=MAX_KNOWN_FILES))
        return found.paths if isinstance(found, PathList) else ()
    return ()


def assist_for(client: ChatClient, guide: str, constraint: Constraint | None) -> AssistSettings | None:
    """Return the assistance that the model of ``client`` needs, if any; with a constraint only where a call is required
    and the ``guide`` is "on"."""
    from adapter.backends.small_model_check import SmallModelCheck

    if constraint is not None:
        return AssistSettings(threshold=False) if (guide, constraint) == ("on", "required") else None
    return SmallModelCheck(client.endpoint, guide).assists_for(client.model if client.endpoint.kind == "ollama" else "")


def constraint_fields_for(
    chat: object, constraint: Constraint | None, tools: ToolSet, format: str, reply: Tool | None
) -> tuple[JsonObject, JsonObject]:
    """What the server is told besides the messages: of an answer as it comes, and of one held to a call."""
    if constraint in (None, "off"):
        return {}, {}
    if (client := as_chat_client(chat)) is None:
        raise UsageError(f"constraint={constraint!r} takes a ChatClient, not a {type(chat).__name__}")
    from adapter.backends.constraint_fields import constraint_fields

    kind = client.endpoint.kind
    held = constraint_fields(kind, tools, format=format, reply=reply)
    waiting: JsonObject = {}
    if constraint == "arguments":
        with suppress(UsageError):  # too large, or nothing left to choose: then it is free
            waiting = constraint_fields(kind, tools, format=format, waits=True)
    return waiting, held
