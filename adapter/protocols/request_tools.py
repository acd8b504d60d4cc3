"""Parse a request's tools, its tool choice and the format of its tool calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from adapter.core.events import Json, JsonObject
from adapter.parsing.format import Format
from adapter.parsing.formats import DEFAULT_FORMAT, get_format, guess_format
from adapter.prompting.escaping import with_control_tokens
from adapter.prompting.tool_shortlist import ToolShortlist, UserRequest, shortlist_tools
from adapter.protocols.conversation_cache import Conversation
from adapter.protocols.custom_and_legacy_tools import ToolTypes
from adapter.protocols.plain_text_messages import parse_content, split_texts
from adapter.protocols.request_errors import RequestError
from adapter.protocols.tool_definitions import parse_tool_set
from adapter.protocols.translation_options import TranslationOptions
from adapter.tools.tool_set import ToolSet

MAX_MODEL = 200
"""Maximum length of the part of a model name that is used to guess the format, in characters."""


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A client's chat request, with its parsed tools and tool choice."""

    body: JsonObject
    kinds: ToolTypes
    described: ToolSet
    """All tools of the request."""
    allowed: ToolSet
    """The tools that ``tool_choice`` allows."""
    must_call: bool
    """True if the model must call a tool."""
    format: Format
    """The format of the model's calls."""
    shortlist: ToolShortlist | None = None
    """The tools that are described to the model, or None if all tools are described."""
    reasoning_budget: int | None = None
    conversation: Conversation = field(default_factory=lambda: Conversation(None))

    @property
    def messages(self) -> Json:
        return self.body.get("messages")

    @property
    def is_parallel(self) -> bool:
        return self.body.get("parallel_tool_calls") is not False

    @property
    def is_single_choice(self) -> bool:
        """True if the request is for one answer. Requests for several answers are not retried."""
        return self.body.get("n") in (None, 1)

    @property
    def prompted_tools(self) -> ToolSet:
        """The allowed tools, without the ones that the prompt does not describe because of the shortlist."""
        return self.allowed if self.shortlist is None else self.shortlist.shown

    @property
    def is_restricted(self) -> bool:
        return len(self.allowed) < len(self.described)


def parse_tool_request(
    body: JsonObject, kinds: ToolTypes, options: TranslationOptions, conversation: Conversation
) -> ToolRequest:
    """Parse the tools of a chat request with the messages ``conversation``. Raises RequestError for invalid tools."""
    described = parse_tool_set(body.get("tools"))
    allowed, must_call = _parse_choice(body.get("tool_choice"), described)
    format = with_control_tokens(
        get_format(choose_request_format(body, options) or DEFAULT_FORMAT), options.prompt.control_tokens
    )
    return ToolRequest(body, kinds, described, allowed, must_call, format, conversation=conversation)


def choose_request_format(body: JsonObject, options: TranslationOptions) -> str | None:
    """Return the user's format, or else the format detected from the chat template or guessed from the model's name."""
    model = str(body.get("model") or "")[:MAX_MODEL]
    guessed = _guess_format(options.prompt.model or model, options.prompt.template) or _guess_format(model, None)
    return options.prompt.format or options.prompt.recognized or guessed


_guess_format = lru_cache(maxsize=256)(guess_format)


def apply_shortlist(tool_request: ToolRequest, options: TranslationOptions) -> ToolRequest:
    """Reduce the described tools to a shortlist if there are more than ``max_tools``."""
    if not tool_request.allowed or tool_request.is_restricted:
        return tool_request
    shortlist = build_shortlist(tool_request.body, tool_request.described, options.prompt.max_tools)
    if shortlist is None:
        return tool_request
    return replace(tool_request, described=shortlist.shown, allowed=shortlist.all, shortlist=shortlist)


def build_shortlist(body: JsonObject, tools: ToolSet, limit: int | None) -> ToolShortlist | None:
    """Select the ``limit`` tools that fit the user's messages and earlier calls best. Return None if there are no more
    than ``limit`` tools."""
    if limit is None or len(tools) <= limit:
        return None
    return shortlist_tools(tools, list(_iter_user_requests(body.get("messages"))), limit)


def _iter_user_requests(messages: Json) -> Iterator[UserRequest]:
    used: set[str] = set()
    for message in messages if isinstance(messages, list) else ():
        match message:
            case {"role": "user", "content": content}:
                yield UserRequest(split_texts(parse_content(content, "messages"))[0], frozenset(used))
            case {"tool_calls": list(calls)}:
                functions = [call["function"] for call in calls if isinstance(call, dict) and "function" in call]
                used |= {str(each.get("name")) for each in functions if isinstance(each, dict)}


def _parse_choice(choice: Json, tools: ToolSet) -> tuple[ToolSet, bool]:
    """Return the tools that may be called, and whether the model must call a tool."""
    match choice:
        case None | "auto":
            return tools, False
        case "none":
            return ToolSet(), False
        case "required" | "any":
            return _select_some(tools, list(tools)), True
        case {"type": "auto" | "none" | "required" | "any" as mode}:
            return _parse_choice(mode, tools)
        case {"type": "function", "function": {"name": str(name)}} | {"type": "function", "name": str(name)}:
            return _select_some(tools, [name]), True
        case {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": list(tool_list)}}:
            return _select_some(tools, list(parse_tool_set(tool_list))), mode == "required"
        case _:
            raise RequestError(
                f"tool_choice must be 'auto', 'none', 'required' or "
                f'{{"type": "function", "function": {{"name": ...}}}}, got {choice!r}',
                "tool_choice",
            )


def _select_some(tools: ToolSet, names: list[str]) -> ToolSet:
    if not names:
        raise RequestError("tool_choice requires a call, but 'tools' is empty", "tool_choice")
    for name in names:
        if name not in tools:
            raise RequestError(f"tool_choice: {tools.explain_unknown(name)}", "tool_choice")
    return ToolSet([tools[name] for name in names])
