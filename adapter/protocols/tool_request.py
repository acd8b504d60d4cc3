"""What a client asks for: which tools there are, which of them may or must be called, how the model writes calls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from adapter.conversation.guardrails.call_history import call_history_of
from adapter.core.events import Json, JsonObject
from adapter.parsing.format import Format
from adapter.parsing.formats import DEFAULT_FORMAT, get_format, guess_format
from adapter.prompting.escaping import with_control_tokens
from adapter.prompting.intent.tool_shortlist import ToolShortlist, shortlist_tools
from adapter.protocols.openai_errors import RequestError
from adapter.protocols.tool_definitions import parse_tool_set
from adapter.protocols.tool_types import ToolTypes
from adapter.protocols.translation_options import TranslationOptions
from adapter.tools.tool import ToolSet

MAX_MODEL = 200
"""Characters of a model's name by which its format is known."""


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """What a client wants. ``described``: all its tools; ``allowed``: those that may be called, of which one must be
    where ``must_call`` says so."""

    body: JsonObject
    kinds: ToolTypes
    described: ToolSet
    allowed: ToolSet
    must_call: bool
    format: Format
    shortlist: ToolShortlist | None = None
    """Of many tools, those that are described."""

    @property
    def messages(self) -> Json:
        return self.body.get("messages")

    @property
    def is_parallel(self) -> bool:
        return self.body.get("parallel_tool_calls") is not False

    @property
    def is_single_choice(self) -> bool:
        """Whether one answer is wanted. Of several none is asked for again."""
        return self.body.get("n") in (None, 1)

    @property
    def offered(self) -> ToolSet:
        """Those of the allowed ones that the model is told of."""
        return self.allowed if self.shortlist is None else self.shortlist.shown

    @property
    def is_restricted(self) -> bool:
        return len(self.allowed) < len(self.described)


def parse_tool_request(body: JsonObject, kinds: ToolTypes, options: TranslationOptions) -> ToolRequest:
    described = parse_tool_set(body.get("tools"))
    allowed, must_call = _choice(body.get("tool_choice"), described)
    format = with_control_tokens(
        get_format(request_format(body, options) or DEFAULT_FORMAT), options.prompt.control_tokens
    )
    return ToolRequest(body, kinds, described, allowed, must_call, format)


def request_format(body: JsonObject, options: TranslationOptions) -> str | None:
    """What is known of it by the user, the template or the model's name."""
    model = str(body.get("model") or "")[:MAX_MODEL]
    guessed = _guessed(options.prompt.model or model, options.prompt.template) or _guessed(model, None)
    return options.prompt.format or options.prompt.recognised or guessed


_guessed = lru_cache(maxsize=256)(guess_format)


def apply_shortlist(asked: ToolRequest, options: TranslationOptions) -> ToolRequest:
    """With few of many tools, where so many are described only."""
    if not asked.allowed or asked.is_restricted:
        return asked
    few = shortlist_of(asked.body, asked.described, options.prompt.max_tools)
    return asked if few is None else replace(asked, described=few.shown, allowed=few.all, shortlist=few)


def shortlist_of(body: JsonObject, tools: ToolSet, most: int | None) -> ToolShortlist | None:
    """By what the user said last, and which tools the conversation has used."""
    if most is None or len(tools) <= most:
        return None
    past = call_history_of(body.get("messages"))
    return shortlist_tools(tools, past.request, most, {made.name for made in past.calls})


def _choice(choice: Json, tools: ToolSet) -> tuple[ToolSet, bool]:
    """The tools that may be called, and whether one must be."""
    match choice:
        case None | "auto":
            return tools, False
        case "none":
            return ToolSet(), False
        case "required":
            return _some(tools, list(tools)), True
        case {"type": "function", "function": {"name": str(name)}} | {"type": "function", "name": str(name)}:
            return _some(tools, [name]), True
        case {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": list(listed)}}:
            return _some(tools, list(parse_tool_set(listed))), mode == "required"
        case _:
            raise RequestError(
                f"tool_choice must be 'auto', 'none', 'required' or "
                f'{{"type": "function", "function": {{"name": ...}}}}, got {choice!r}',
                "tool_choice",
            )


def _some(tools: ToolSet, names: list[str]) -> ToolSet:
    if not names:
        raise RequestError("tool_choice asks for a call, but 'tools' is empty", "tool_choice")
    for name in names:
        if name not in tools:
            raise RequestError(f"tool_choice: {tools.explain_unknown(name)}", "tool_choice")
    return ToolSet([tools[name] for name in names])
