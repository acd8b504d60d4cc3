"""An OpenAI chat request with tools as one that any server takes: the tools in the prompt, nothing else changed."""

from __future__ import annotations

import hashlib
import json
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
from adapter.prompting.intent.assist import Assist, AssistSettings, plan_assist
from adapter.prompting.intent.grounding import ground_conversation
from adapter.prompting.system_prompt import new_prompt_session, system_prompt
from adapter.protocols.guarded_exchange import EXTENSION, ResponseGuard
from adapter.protocols.llama_cpp import has_lazy_grammar
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
"""One for all requests: what a conversation's prompt begins with stays the same."""

MAX_ANSWERS = 128
"""That one request may ask for (``n``), as at OpenAI."""


def needs_translation(body: Json) -> bool:
    """Whether a request needs translating at all: it offers tools, speaks of calls made before, or has more to say by
    the system than a template may take."""
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
    """Whether the answer to a request that goes on as it is may hold what is not for the client: reasoning of a model
    whose family is known by its name, unless its server ``splits`` that off; gpt-oss' channels in any case, for some
    servers leave them in."""
    format = request_format(body, options)
    return format == "harmony" or (format is not None and not splits)


def passthrough_request(body: JsonObject, options: TranslationOptions) -> TranslatedRequest:
    """The request as it came, of which the answer is read. Raises RequestError as `translate` does."""
    asked = ToolRequest(
        body, FUNCTIONS, ToolSet(), ToolSet(), False, get_format(request_format(body, options) or DEFAULT_FORMAT)
    )
    request = _as_request(asked, options)
    before = options.prompt.generation_prompt
    parsing = replace(request.parsing, format=asked.format.name, generation_prompt=before)
    return replace(request, turn=_turn(asked.messages), parsing=parsing)


def translate_chat_request(body: JsonObject, options: TranslationOptions) -> TranslatedRequest:
    """The request as it goes to the server. Raises RequestError for one that OpenAI would refuse as well."""
    check_size(body)
    functions, kinds = tools_as_functions(body)
    options = options.for_model(str(body.get("model") or ""))
    if kinds is not FUNCTIONS:
        options = replace(options, native=False, stream_arguments=False)
    return _translate(parse_tool_request(functions, kinds, options), options)


@dataclass(frozen=True, slots=True)
class _Enforcement:
    """How far the model is held to calls. ``fields`` enforce one now. ``reply``: the tool that says something;
    ``may_reply``: it may be called now."""

    constraint: Constraint
    choices: Choices
    fields: JsonObject
    reply: Tool | None
    may_reply: bool


@dataclass(frozen=True, slots=True)
class _PromptedRequest:
    """What the server is sent: ``body``, with ``messages`` in it. ``own``: how the model's own template makes a prompt;
    None where it is words."""

    body: JsonObject
    messages: list[JsonObject]
    own: TemplatePrompt | None


def _translate(asked: ToolRequest, options: TranslationOptions) -> TranslatedRequest:
    if options.native:
        return _native(asked, options)
    if options.assists is not None and asked.allowed and options.helps_with(asked.body):
        return _assisted(asked, options, options.assists)
    as_text = partial(_translate, asked, options.with_prompt(own=None))
    asked = apply_shortlist(asked, options)
    held = _held(asked, options)
    told = _told(asked, options, held)
    body = told.body | held.fields
    is_plain = told.own is not None or all(isinstance(each["content"], str) for each in told.messages)
    if held.constraint == "arguments" and options.constraints.waits_for_calls and is_plain:
        body |= _waiting_fields(asked, options, held)
    request = _as_request(asked, options)
    return replace(
        request,
        body=body,
        turn=_turn(told.messages),
        parsing=replace(
            request.parsing,
            policy=APPROVED.name if held.fields else options.policy,  # what is enforced may be a call without markers
            generation_prompt=_generation_prompt(body, options, told.own),
            reply=held.reply if held.may_reply else None,
            format=asked.format.name,
            control_tokens=options.prompt.control_tokens,
        ),
        follow_up=_follow_up(asked, options, held),
        memory=options.memory,
        as_text=as_text if told.own and options.prompt.mode == "auto" else None,
    )


def _generation_prompt(body: JsonObject, options: TranslationOptions, own: TemplatePrompt | None) -> str | None:
    if body.keys() & CONSTRAINTS and not has_lazy_grammar(body):
        return ""
    if options.prompt.generation_prompt is not None or own is None or own.transport == "vllm":
        return options.prompt.generation_prompt
    return own.traits.generation_prompt


def _follow_up(asked: ToolRequest, options: TranslationOptions, held: _Enforcement) -> FollowUp:
    return FollowUp(
        watch=_watch(asked, options, held),
        constraint=held.constraint if asked.is_single_choice else "off",
        enforce=options.constraints.enforce,
        choices=held.choices,
        previous_calls=(
            frozenset(call_key(*call) for call in last_calls(asked.messages)) if asked.is_single_choice else frozenset()
        ),
        shortlist=asked.shortlist,
    )


def _watch(asked: ToolRequest, options: TranslationOptions, held: _Enforcement) -> ResponseGuard | None:
    enforces = options.constraints.enforce is not None
    return options.retry_policy.watch(
        asked.body,
        asked.allowed,
        asked.described,
        asked.format.encode_calls,
        is_held=enforces and held.constraint in ("prefer", "required"),
        may_hold=enforces and options.constraints.mode != "off" and not asked.body.keys() & CONSTRAINTS,
        must_mend=enforces and held.constraint == "arguments",
    )


def _as_request(asked: ToolRequest, options: TranslationOptions) -> TranslatedRequest:
    """The request as it came, with the client's wishes for its answer."""
    body = asked.body
    stream_options = body.get("stream_options")
    return TranslatedRequest(
        body={key: value for key, value in body.items() if key != EXTENSION},
        tools=asked.allowed,
        client=ClientSettings(
            messages=asked.messages,
            stream=body.get("stream") is True,
            wants_usage=isinstance(stream_options, dict) and stream_options.get("include_usage") is True,
            parallel=asked.is_parallel,
            answers=_answers(body),
            kinds=asked.kinds,
        ),
        parsing=ParserSettings(
            policy=options.policy, stream_arguments=options.stream_arguments, is_restricted=asked.is_restricted
        ),
        observation=replace(options.observation, clock=options.retry_policy.clock),
    )


def _native(asked: ToolRequest, options: TranslationOptions) -> TranslatedRequest:
    """The request as it came: the server describes the tools and reads the calls."""
    watch = options.retry_policy.watch(
        asked.body, asked.allowed, asked.described, encode_calls, is_held=False, may_hold=False, must_mend=False
    )
    return replace(
        _as_request(asked, options),
        turn=_turn(asked.messages),
        is_native=True,
        follow_up=FollowUp(watch=watch),
        as_text=partial(_translate, asked, replace(options, native=False)),
    )


def _assisted(asked: ToolRequest, options: TranslationOptions, settings: AssistSettings) -> TranslatedRequest:
    """Build the request for a model that is too small to choose: an answer in words, or a call of the nearest tool."""
    options = replace(options, assists=None)
    request, has_result = last_request(asked.messages)
    assist = Assist()
    if asked.must_call or not has_result:
        assist = plan_assist(request, asked.allowed, settings, must_call=asked.must_call)
    if not assist.tools:
        return _translate(replace(asked, allowed=ToolSet(), must_call=False), options)
    held = replace(
        options.with_prompt(style="small").with_constraints(mode="required", choices=assist.choices),
        fields={"temperature": 0, **options.fields},
    )
    tools = [tool.to_openai() for tool in assist.tools.values()]
    only = {**asked.body, "tools": tools, "tool_choice": "required"}
    try:
        return _translate(parse_tool_request(only, asked.kinds, held), held)
    except RequestError:  # no grammar for these tools
        return _translate(asked, options)


def _held(asked: ToolRequest, options: TranslationOptions) -> _Enforcement:
    allowed = asked.allowed
    constraint = _constraint(asked.body, options, asked.must_call) if allowed else "off"
    settings = options.constraints
    reply = add_reply_tool(asked.described)[1] if settings.mode == "prefer" and settings.enforce else None
    may_reply = reply is not None and constraint == "prefer"
    choices: Choices = {}
    if constraint != "off" and (settings.grounded or settings.ground):
        try:
            choices = ground_conversation(allowed, asked.messages or [], settings.ground)
        except UsageError as error:  # of ``ground``
            raise RequestError(str(error)) from error
    choices = {**choices, **(settings.choices or {})}
    fields: JsonObject = {}
    if settings.enforce and constraint in ("prefer", "required"):
        # One call an answer is enough for a loop; small models that may make several do not stop.
        several = may_reply and asked.body.get("parallel_tool_calls") is True
        may_say, format = reply if may_reply else None, asked.format.name
        try:
            fields = settings.enforce(asked.offered, choices, format=format, reply=may_say, several=several)
        except UsageError as error:
            raise RequestError(str(error), "tools") from error
    return _Enforcement(constraint, choices, fields, reply, may_reply)


def _waiting_fields(asked: ToolRequest, options: TranslationOptions, held: _Enforcement) -> JsonObject:
    """What holds the model to valid calls once it has begun one."""
    if options.constraints.enforce is not None:
        with suppress(UsageError):  # too large, or nothing left to choose: then it is free
            return options.constraints.enforce(asked.offered, held.choices, format=asked.format.name, waits=True)
    return {}


def _told(asked: ToolRequest, options: TranslationOptions, held: _Enforcement) -> _PromptedRequest:
    """The tools and the conversation: by the model's own template, or in words."""
    # All tools are described although only some may be called now: a beginning that stays the same is cached.
    shown = ToolSet([*asked.described.values(), held.reply]) if held.reply else asked.described
    # The request itself is to stand before the answer.
    order = "" if options.constraints.choices is not None else _order(asked)
    known = options.prompt.own if options.prompt.may_be_own else None
    own = template_prompt_for(asked.body, known) if known is not None else None
    if own is not None:
        told = _told_by_template(asked, options, held, own, shown, order)
    elif options.prompt.mode == "own":
        raise RequestError(NOT_OWN, "tools")
    else:
        system = _prompt(shown, asked.format, options.style_used, options.prompt.prompts) if asked.allowed else ""
        messages = plain_messages(asked.messages, asked.format, system, order, asked.described, options.memory)
        told = _PromptedRequest(
            {**options.fields, **passthrough_fields(asked.body), "messages": messages}, messages, None
        )
    if asked.allowed and asked.format.stop_sequences:
        told.body["stop"] = _stops(asked.body.get("stop"), asked.format.stop_sequences)
    return told


def _told_by_template(
    asked: ToolRequest, options: TranslationOptions, held: _Enforcement, own: TemplatePrompt, shown: ToolSet, order: str
) -> _PromptedRequest:
    # Words that are none of the template's only where nothing else holds the model to what was asked for.
    is_free = not asked.must_call and not asked.is_restricted
    closing = "" if is_free or (held.fields and held.constraint == "required") else order
    told = template_messages(
        asked.messages, own.traits, asked.format, asked.described, closing=closing, memory=options.memory
    )
    plain = passthrough_fields(asked.body)
    if asked.allowed:
        plain["tools"] = template_tool_definitions(asked.body.get("tools"), shown, asked.format)
    if "llama.cpp" in (own.transport, own.server):
        plain["preserved_tokens"] = list(asked.format.special_tokens)
    body = with_template_marks({**options.fields, **plain, "messages": told.messages}, own, told.written)
    return _PromptedRequest(body, told.messages, own)


def _answers(body: JsonObject) -> int:
    number = body.get("n")
    if number is None:
        return 1
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= MAX_ANSWERS:
        raise RequestError(f"'n' must be a number from 1 to {MAX_ANSWERS}, got {str(number)[:40]!r}", "n")
    return number


def _turn(messages: Json) -> str:
    return hashlib.sha256(json.dumps(messages, default=str).encode("utf-8", "replace")).hexdigest()


def _constraint(body: JsonObject, options: TranslationOptions, must_call: bool) -> Constraint:
    """What holds for this request: a constraint of the client's own excludes ours."""
    if options.constraints.mode == "off" or body.keys() & CONSTRAINTS:
        return "off"
    return "required" if must_call else options.constraints.mode or "off"


def _order(asked: ToolRequest) -> str:
    """What the request demands beyond the usual. At the end, where it leaves the prompt's beginning as it was."""
    which = " or ".join(asked.allowed) if asked.is_restricted else "one of the tools"
    one = "" if asked.is_parallel else " Make one call only."
    if asked.must_call:
        return f"Answer with a tool call of {which}.{one}"
    if asked.allowed and asked.is_restricted:
        return f"You may call {which} now, no other tool.{one}"
    return one.strip() if asked.allowed else ""


def _stops(stop: Json, formats: tuple[str, ...]) -> list[str]:
    own = [stop] if isinstance(stop, str) else require_type(list, stop, "stop")
    return own + [each for each in formats if each not in own]


@lru_cache(CACHE_SIZE)
def _prompt(tools: ToolSet, format: Format, style: str, prompts: str | None) -> str:
    """One text per set of tools: byte for byte the same each time, as the server's cache needs it."""
    return system_prompt(CLIENTS_TOOLS, format, style, tools=tools, prompts=prompts, session=SESSION).strip()
