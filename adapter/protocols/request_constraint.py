"""Build the constraint on the answer to a request, so that the model can only write valid calls."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from adapter.core.errors import UsageError
from adapter.core.events import JsonObject
from adapter.grammars.constraint_mode import Constraint
from adapter.grammars.reply_tool import add_reply_tool
from adapter.grammars.schema_ir import Choices
from adapter.protocols.grounding_constraint import ground_conversation
from adapter.protocols.request_errors import RequestError
from adapter.protocols.request_tools import ToolRequest
from adapter.protocols.translation_options import CONSTRAINTS, TranslationOptions
from adapter.tools.tool import Tool


@dataclass(frozen=True, slots=True)
class Enforcement:
    """The constraint on the answer to a request."""

    constraint: Constraint
    choices: Choices
    fields: JsonObject
    """Request fields that make the model server enforce a call."""
    reply: Tool | None
    """The reply tool, which a model that must make a call uses to reply in words; None if there is none."""
    may_reply: bool
    """True if the reply tool may be called in this answer."""


def build_enforcement(request: ToolRequest, options: TranslationOptions) -> Enforcement:
    """Return the constraint on the answer to a request. Raises RequestError if it cannot be built for these tools."""
    allowed = request.allowed
    constraint = _choose_constraint(request.body, options, request.must_call) if allowed else "off"
    settings = options.constraints
    reply = add_reply_tool(request.described)[1] if settings.mode == "prefer" and settings.enforce else None
    may_reply = reply is not None and constraint == "prefer"
    choices: Choices = {}
    if constraint != "off" and (settings.grounded or settings.ground):
        try:
            choices = ground_conversation(allowed, request.messages or [], settings.ground)
        except UsageError as error:  # raised by ``ground``
            raise RequestError(str(error)) from error
    choices = {**choices, **(settings.choices or {})}
    fields: JsonObject = {}
    if settings.enforce and constraint in ("prefer", "required"):
        # One call per answer is enough in a loop, and small models that may make several calls do not stop.
        several = may_reply and request.body.get("parallel_tool_calls") is True
        reply_tool, format = reply if may_reply else None, request.format.name
        try:
            fields = settings.enforce(request.prompted_tools, choices, format=format, reply=reply_tool, several=several)
        except UsageError as error:
            raise RequestError(str(error), "tools") from error
    return Enforcement(constraint, choices, fields, reply, may_reply)


def build_lazy_constraint_fields(
    request: ToolRequest, options: TranslationOptions, enforcement: Enforcement
) -> JsonObject:
    """Return the request fields for a constraint that applies only after the model begins a call."""
    if options.constraints.enforce is not None:
        with suppress(UsageError):  # the grammar is too large, or a value has no choices: the call stays unconstrained
            return options.constraints.enforce(
                request.prompted_tools, enforcement.choices, format=request.format.name, waits=True
            )
    return {}


def _choose_constraint(body: JsonObject, options: TranslationOptions, must_call: bool) -> Constraint:
    """Return the constraint mode of a request. The mode is "off" if the client constrains the answer itself."""
    if options.constraints.mode == "off" or body.keys() & CONSTRAINTS:
        return "off"
    return "required" if must_call else options.constraints.mode or "off"
