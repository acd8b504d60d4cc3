"""Build the prompt of a request from its tools and conversation, with the model's chat template or as plain text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from adapter.core.events import Json, JsonObject
from adapter.parsing.format import Format
from adapter.prompting.system_prompt import create_prompt_session, system_prompt
from adapter.protocols.conversation_cache import Conversation
from adapter.protocols.openai_chat_fields import select_passthrough_fields
from adapter.protocols.plain_text_messages import render_plain_messages
from adapter.protocols.request_constraint import Enforcement
from adapter.protocols.request_errors import RequestError, require_type
from adapter.protocols.request_tools import ToolRequest
from adapter.protocols.template_messages import prepare_template_messages, prepare_tool_definitions
from adapter.protocols.template_prompt import NOT_OWN, TemplatePrompt, find_template_prompt, with_template_settings
from adapter.protocols.tool_definitions import CACHE_SIZE
from adapter.protocols.translation_options import CLIENTS_TOOLS, TranslationOptions
from adapter.tools.tool_set import ToolSet

SESSION = create_prompt_session()
"""The prompt session of all requests. A conversation's prompt must always begin with the same text."""


@dataclass(frozen=True, slots=True)
class PromptedRequest:
    """The request body with its prompt, and details of the prompt."""

    body: JsonObject
    messages: list[JsonObject]
    """The messages in ``body``."""
    beginning: str
    """Hash of the client's messages."""
    template_prompt: TemplatePrompt | None
    """The chat template that renders the prompt, or None for a generated prompt."""
    shortened: str = ""
    """Summary of how the conversation was shortened, or ""."""


def build_prompt(request: ToolRequest, options: TranslationOptions, enforcement: Enforcement) -> PromptedRequest:
    """Add the conversation and the tools to the request, for the chat template or as plain text."""
    # Describe all tools even if only some may be called now, because the server caches an unchanged prefix.
    shown = ToolSet([*request.described.values(), enforcement.reply]) if enforcement.reply else request.described
    # The request itself must directly precede the answer if values are taken from it.
    instruction = "" if options.constraints.choices is not None else _describe_choice(request)
    template = options.prompt.template_prompt if options.prompt.may_use_template else None
    template = find_template_prompt(request.body, template) if template is not None else None
    if template is not None:
        prompted = _build_template_prompt(request, options, enforcement, template, shown, instruction)
    elif options.prompt.mode == "own":
        raise RequestError(NOT_OWN, "tools")
    else:
        system = (
            _render_prompt(shown, request.format, options.style_used, options.prompt.prompts) if request.allowed else ""
        )
        conversation, shortened = _fit(request, options, system)
        messages, beginning = render_plain_messages(
            conversation, request.format, system, instruction, request.described, options.memory
        )
        body = {**options.fields, **select_passthrough_fields(request.body), "messages": messages}
        prompted = PromptedRequest(body, messages, beginning, None, shortened)
    if request.allowed and request.format.stop_sequences:
        prompted.body["stop"] = _merge_stops(request.body.get("stop"), request.format.stop_sequences)
    return prompted


def _build_template_prompt(
    request: ToolRequest,
    options: TranslationOptions,
    enforcement: Enforcement,
    template: TemplatePrompt,
    shown: ToolSet,
    instruction: str,
) -> PromptedRequest:
    # Without a restriction, the template needs no further instruction. An enforced call does not need one either.
    is_free = not request.must_call and not request.is_restricted
    closing = "" if is_free or (enforcement.fields and enforcement.constraint == "required") else instruction
    plain = select_passthrough_fields(request.body)
    if request.allowed:
        plain["tools"] = prepare_tool_definitions(request.body.get("tools"), shown, request.format)
    conversation, shortened = _fit(request, options, plain.get("tools"))
    rendered = prepare_template_messages(
        conversation, template.traits, request.format, request.described, closing=closing, memory=options.memory
    )
    if "llama.cpp" in (template.transport, template.server):
        plain["preserved_tokens"] = list(request.format.special_tokens)
    body = with_template_settings(
        {**options.fields, **plain, "messages": rendered.messages}, template, rendered.written
    )
    return PromptedRequest(body, rendered.messages, rendered.beginning, template, shortened)


def _fit(request: ToolRequest, options: TranslationOptions, rest: Json) -> tuple[Conversation, str]:
    """Shorten the conversation so that it fits into the context with ``rest``, the other parts of the prompt. Return
    the conversation and a summary of the cuts, or ""."""
    fitted = options.get_budgets(request.body).fit(request.messages, rest)
    if not fitted.cuts:
        return request.conversation, ""
    shortened = options.memory.conversations.continue_longest(
        request.conversation.shorten(fitted.messages, fitted.indices)
    )
    options.memory.conversations.store(shortened)
    return shortened, fitted.summary


def _describe_choice(request: ToolRequest) -> str:
    """Return an instruction about which tools must or may be called. It ends the prompt, so that the beginning of the
    prompt stays the same."""
    which = " or ".join(request.allowed) if request.is_restricted else "one of the tools"
    one = "" if request.is_parallel else " Make one call only."
    if request.must_call:
        return f"Answer with a call to {which}.{one}"
    if request.allowed and request.is_restricted:
        return f"You may call {which} now, no other tool.{one}"
    return one.strip() if request.allowed else ""


def _merge_stops(stop: Json, formats: tuple[str, ...]) -> list[str]:
    own = [stop] if isinstance(stop, str) else require_type(list, stop, "stop")
    return own + [each for each in formats if each not in own]


@lru_cache(CACHE_SIZE)
def _render_prompt(tools: ToolSet, format: Format, style: str, prompts: str | None) -> str:
    """Generate the system prompt that describes ``tools``. Equal arguments give equal prompts."""
    return system_prompt(CLIENTS_TOOLS, format, style, tools=tools, prompts=prompts, session=SESSION).strip()
