"""Translate an OpenAI chat request with tools into a request that any server accepts, with the tools in the prompt."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from adapter.conversation.guardrails.call_history import call_key
from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.grammars.constraint_mode import Constraint
from adapter.grammars.reply_tool import add_reply_tool
from adapter.grammars.schema_ir import Choices
from adapter.parsing.format import Format
from adapter.parsing.formats import DEFAULT_FORMAT, get_format
from adapter.parsing.formats.hermes import encode_calls
from adapter.parsing.parse_policy import APPROVED
from adapter.prompting.intent.assist import Assist, AssistSettings, plan_assist, plan_next_call
from adapter.prompting.system_prompt import new_prompt_session, system_prompt
from adapter.protocols.grounding import ground_conversation
from adapter.protocols.guarded_exchange import EXTENSION, ResponseGuard
from adapter.protocols.llama_cpp import has_lazy_grammar
from adapter.protocols.media_parts import adapt_media
from adapter.protocols.openai_chat_fields import passthrough_fields
from adapter.protocols.openai_errors import RequestError, require_type
from adapter.protocols.plain_messages import has_misplaced_system, last_calls, last_request, plain_messages
from adapter.protocols.request_limits import check_size
from adapter.protocols.template_messages import template_messages, template_tool_definitions
from adapter.protocols.template_prompt import NOT_OWN, TemplatePrompt, template_prompt_for, with_template_marks
from adapter.protocols.tool_definitions import CACHE_SIZE
from adapter.protocols.tool_request import ToolRequest, apply_shortlist, parse_tool_request, request_format
from adapter.protocols.tool_types import FUNCTIONS, tools_as_functions
from adapter.protocols.translated_request import ClientSettings, FollowUp, ParserSettings, TranslatedRequest
from adapter.protocols.translation_options import CLIENTS_TOOLS, CONSTRAINTS, TranslationOptions
from adapter.tools.tool import Tool, ToolSet

SESSION = new_prompt_session()
"""The prompt session of all requests. It is shared because the prompt of a conversation must always begin with the same
text."""

MAX_ANSWERS = 128
"""Maximum number of answers to one request (``n``), as in OpenAI's API."""


def needs_translation(body: Json) -> bool:
    """Return whether a request offers tools, contains earlier calls, or has system messages that a template may
    reject."""
    if not isinstance(body, dict):
        return False
    messages = body["messages"] if isinstance(body.get("messages"), list) else []
    return (
        bool(body.get("tools") or body.get("functions"))
        or has_misplaced_system(messages)
        or any(
            isinstance(message, dict)
            and (
                message.get("role") in ("tool", "function")
                or bool(message.get("tool_calls") or message.get("function_call"))
            )
            for message in messages
        )
    )


def needs_reading(body: JsonObject, options: TranslationOptions, *, splits: bool) -> bool:
    """Return whether the answer to an untranslated request must be parsed.

    ``splits``: the server separates reasoning from the text. If it does not, answers of known model families are
    parsed. Answers of gpt-oss are always parsed, because some servers leave its channel tokens in the text.
    """
    format = request_format(body, options)
    return format == "harmony" or (format is not None and not splits)


def passthrough_request(body: JsonObject, options: TranslationOptions) -> TranslatedRequest:
    """Return an untranslated request whose answer is parsed. Raises RequestError for an invalid request."""
    request = ToolRequest(
        body, FUNCTIONS, ToolSet(), ToolSet(), False, get_format(request_format(body, options) or DEFAULT_FORMAT)
    )
    translated = _as_request(request, options)
    generation_prompt = options.prompt.generation_prompt
    parsing = replace(translated.parsing, format=request.format.name, generation_prompt=generation_prompt)
    return replace(translated, turn=_turn(request.messages), parsing=parsing)


def translate_chat_request(body: JsonObject, options: TranslationOptions) -> TranslatedRequest:
    """Translate a chat request. Raises RequestError if it is invalid, as OpenAI's API would also report."""
    check_size(body)
    body = {**body, "messages": adapt_media(body.get("messages"), options.unsupported_media)}
    functions, kinds = tools_as_functions(body)
    options = options.for_model(str(body.get("model") or ""))
    if kinds is not FUNCTIONS:
        options = replace(options, native=False, stream_arguments=False)
    return _translate(parse_tool_request(functions, kinds, options), options)


@dataclass(frozen=True, slots=True)
class _Enforcement:
    """The constraint on the answer to a request.

    ``fields``: request fields that enforce a call. ``reply``: the tool for replying in words. ``may_reply``: the reply
    tool may be called in this answer.
    """

    constraint: Constraint
    choices: Choices
    fields: JsonObject
    reply: Tool | None
    may_reply: bool


@dataclass(frozen=True, slots=True)
class _PromptedRequest:
    """The request body with its prompt. ``messages``: also in ``body``. ``own``: the template prompt; None for a text
    prompt."""

    body: JsonObject
    messages: list[JsonObject]
    own: TemplatePrompt | None


def _translate(request: ToolRequest, options: TranslationOptions) -> TranslatedRequest:
    if options.native:
        return _native(request, options)
    if options.assists is not None and request.allowed and options.may_assist(request.body):
        return _assisted(request, options, options.assists)
    as_text = partial(_translate, request, options.with_prompt(own=None))
    request = apply_shortlist(request, options)
    enforcement = _build_enforcement(request, options)
    prompted = _build_prompt(request, options, enforcement)
    body = prompted.body | enforcement.fields
    is_plain = prompted.own is not None or all(isinstance(each["content"], str) for each in prompted.messages)
    if enforcement.constraint == "arguments" and options.constraints.waits_for_calls and is_plain:
        body |= _lazy_constraint_fields(request, options, enforcement)
    translated = _as_request(request, options)
    return replace(
        translated,
        body=body,
        turn=_turn(prompted.messages),
        parsing=replace(
            translated.parsing,
            policy=APPROVED.name if enforcement.fields else options.policy,  # enforced calls may have no markers
            generation_prompt=_generation_prompt(body, options, prompted.own),
            reply=enforcement.reply if enforcement.may_reply else None,
            format=request.format.name,
            control_tokens=options.prompt.control_tokens,
        ),
        follow_up=_follow_up(request, options, enforcement),
        memory=options.memory,
        as_text=as_text if prompted.own and options.prompt.mode == "auto" else None,
    )


def _generation_prompt(body: JsonObject, options: TranslationOptions, own: TemplatePrompt | None) -> str | None:
    if body.keys() & CONSTRAINTS and not has_lazy_grammar(body):
        return ""
    if options.prompt.generation_prompt is not None or own is None or own.transport == "vllm":
        return options.prompt.generation_prompt
    return own.traits.generation_prompt


def _follow_up(request: ToolRequest, options: TranslationOptions, enforcement: _Enforcement) -> FollowUp:
    return FollowUp(
        guard=_response_guard(request, options, enforcement),
        constraint=enforcement.constraint if request.is_single_choice else "off",
        enforce=options.constraints.enforce,
        choices=enforcement.choices,
        previous_calls=(
            frozenset(call_key(*call) for call in last_calls(request.messages))
            if request.is_single_choice
            else frozenset()
        ),
        shortlist=request.shortlist,
    )


def _response_guard(
    request: ToolRequest, options: TranslationOptions, enforcement: _Enforcement
) -> ResponseGuard | None:
    enforces = options.constraints.enforce is not None
    return options.retry_policy.make_guard(
        request.body,
        request.allowed,
        request.described,
        request.format.encode_calls,
        is_enforced=enforces and enforcement.constraint in ("prefer", "required"),
        may_enforce=enforces and options.constraints.mode != "off" and not request.body.keys() & CONSTRAINTS,
        requires_valid_calls=enforces and enforcement.constraint == "arguments",
    )


def _as_request(request: ToolRequest, options: TranslationOptions) -> TranslatedRequest:
    """Return the unchanged request, with the client's settings for its answer."""
    body = request.body
    stream_options = body.get("stream_options")
    return TranslatedRequest(
        body={key: value for key, value in body.items() if key != EXTENSION},
        tools=request.allowed,
        client=ClientSettings(
            messages=request.messages,
            stream=body.get("stream") is True,
            wants_usage=isinstance(stream_options, dict) and stream_options.get("include_usage") is True,
            parallel=request.is_parallel,
            answers=_answers(body),
            kinds=request.kinds,
        ),
        parsing=ParserSettings(
            policy=options.policy, stream_arguments=options.stream_arguments, is_restricted=request.is_restricted
        ),
        observation=options.observation,
        clock=options.retry_policy.clock,
    )


def _native(request: ToolRequest, options: TranslationOptions) -> TranslatedRequest:
    """Return the unchanged request for a server that describes the tools and parses the calls."""
    guard = options.retry_policy.make_guard(
        request.body,
        request.allowed,
        request.described,
        encode_calls,
    )
    return replace(
        _as_request(request, options),
        turn=_turn(request.messages),
        is_native=True,
        follow_up=FollowUp(guard=guard),
        as_text=partial(_translate, request, replace(options, native=False)),
    )


def _assisted(request: ToolRequest, options: TranslationOptions, settings: AssistSettings) -> TranslatedRequest:
    """Build the request for a model that is too small to choose a tool.

    It must call the best match for the user's message, or reply in words if no tool matches. After the call, it must
    make the further calls that the message asks for.
    """
    options = replace(options, assists=None)
    user_text, has_result = last_request(request.messages)
    assist = Assist()
    if request.must_call or not has_result:
        assist = plan_assist(user_text, request.allowed, settings, must_call=request.must_call)
    if not assist.tools:
        return _translate(replace(request, allowed=ToolSet(), must_call=False), options)
    return _as_planned(request, options, assist, user_text)


def _as_planned(request: ToolRequest, options: TranslationOptions, assist: Assist, user_text: str) -> TranslatedRequest:
    constrained = replace(
        options.with_prompt(style="small").with_constraints(mode="required", choices=assist.choices),
        fields={"temperature": 0, **options.fields},
    )
    tools = [tool.to_openai() for tool in assist.tools.values()]
    only = {**request.body, "tools": tools, "tool_choice": "required"}
    try:
        planned = _translate(parse_tool_request(only, request.kinds, constrained), constrained)
    except RequestError:  # no grammar for these tools: they are still the only ones that may be called
        return _translate(replace(request, allowed=ToolSet(request.allowed[name] for name in assist.tools)), options)
    if options.constraints.enforce is None or not (request.is_single_choice and request.is_parallel):
        return planned
    next_call = partial(_next_call, request, options, user_text)
    return replace(planned, follow_up=replace(planned.follow_up, next_call=next_call))


def _next_call(
    request: ToolRequest, options: TranslationOptions, user_text: str, calls: Sequence[tuple[str, JsonObject]]
) -> TranslatedRequest | None:
    """Return the request for the call that follows ``calls`` in the same answer; None if there is none."""
    assist = plan_next_call(user_text, request.allowed, calls)
    return _as_planned(request, options, assist, user_text) if assist.tools else None


def _build_enforcement(request: ToolRequest, options: TranslationOptions) -> _Enforcement:
    allowed = request.allowed
    constraint = _constraint(request.body, options, request.must_call) if allowed else "off"
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
    return _Enforcement(constraint, choices, fields, reply, may_reply)


def _lazy_constraint_fields(request: ToolRequest, options: TranslationOptions, enforcement: _Enforcement) -> JsonObject:
    """Return the request fields for a constraint that applies only after the model begins a call."""
    if options.constraints.enforce is not None:
        with suppress(UsageError):  # too large, or without an allowed value: the call is not constrained
            return options.constraints.enforce(
                request.prompted_tools, enforcement.choices, format=request.format.name, waits=True
            )
    return {}


def _build_prompt(request: ToolRequest, options: TranslationOptions, enforcement: _Enforcement) -> _PromptedRequest:
    """Add the conversation and the tools to the request, for the chat template or as plain text."""
    # Describe all tools even if only some may be called now: an unchanged prompt prefix is cached.
    shown = ToolSet([*request.described.values(), enforcement.reply]) if enforcement.reply else request.described
    # The request itself must directly precede the answer if values are taken from it.
    instruction = "" if options.constraints.choices is not None else _instruction(request)
    template = options.prompt.own if options.prompt.may_be_own else None
    own = template_prompt_for(request.body, template) if template is not None else None
    if own is not None:
        prompted = _build_template_prompt(request, options, enforcement, own, shown, instruction)
    elif options.prompt.mode == "own":
        raise RequestError(NOT_OWN, "tools")
    else:
        system = _prompt(shown, request.format, options.style_used, options.prompt.prompts) if request.allowed else ""
        messages = plain_messages(
            request.messages, request.format, system, instruction, request.described, options.memory
        )
        prompted = _PromptedRequest(
            {**options.fields, **passthrough_fields(request.body), "messages": messages}, messages, None
        )
    if request.allowed and request.format.stop_sequences:
        prompted.body["stop"] = _merge_stops(request.body.get("stop"), request.format.stop_sequences)
    return prompted


def _build_template_prompt(
    request: ToolRequest,
    options: TranslationOptions,
    enforcement: _Enforcement,
    own: TemplatePrompt,
    shown: ToolSet,
    instruction: str,
) -> _PromptedRequest:
    # Add an instruction that is not part of the template only if the call is not enforced anyway.
    is_free = not request.must_call and not request.is_restricted
    closing = "" if is_free or (enforcement.fields and enforcement.constraint == "required") else instruction
    rendered = template_messages(
        request.messages,
        own.traits,
        request.format,
        request.described,
        closing=closing,
        memory=options.memory,
    )
    plain = passthrough_fields(request.body)
    if request.allowed:
        plain["tools"] = template_tool_definitions(request.body.get("tools"), shown, request.format)
    if "llama.cpp" in (own.transport, own.server):
        plain["preserved_tokens"] = list(request.format.special_tokens)
    body = with_template_marks({**options.fields, **plain, "messages": rendered.messages}, own, rendered.written)
    return _PromptedRequest(body, rendered.messages, own)


def _answers(body: JsonObject) -> int:
    number = body.get("n")
    if number is None:
        return 1
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= MAX_ANSWERS:
        raise RequestError(f"'n' must be between 1 and {MAX_ANSWERS}, got {str(number)[:40]!r}", "n")
    return number


def _turn(messages: Json) -> str:
    return hashlib.sha256(json.dumps(messages, default=str).encode("utf-8", "replace")).hexdigest()


def _constraint(body: JsonObject, options: TranslationOptions, must_call: bool) -> Constraint:
    """Return the constraint mode of a request. If the client constrains the answer, the mode is "off"."""
    if options.constraints.mode == "off" or body.keys() & CONSTRAINTS:
        return "off"
    return "required" if must_call else options.constraints.mode or "off"


def _instruction(request: ToolRequest) -> str:
    """Describe which tools must or may be called, as text at the end of the prompt. The rest of the prompt stays
    unchanged."""
    which = " or ".join(request.allowed) if request.is_restricted else "one of the tools"
    one = "" if request.is_parallel else " Make one call only."
    if request.must_call:
        return f"Answer with a tool call of {which}.{one}"
    if request.allowed and request.is_restricted:
        return f"You may call {which} now, no other tool.{one}"
    return one.strip() if request.allowed else ""


def _merge_stops(stop: Json, formats: tuple[str, ...]) -> list[str]:
    own = [stop] if isinstance(stop, str) else require_type(list, stop, "stop")
    return own + [each for each in formats if each not in own]


@lru_cache(CACHE_SIZE)
def _prompt(tools: ToolSet, format: Format, style: str, prompts: str | None) -> str:
    """Build the text prompt. Equal arguments always give equal prompts, so that the server can use its cache."""
    return system_prompt(CLIENTS_TOOLS, format, style, tools=tools, prompts=prompts, session=SESSION).strip()
