"""Translate an OpenAI chat request with tools to a request accepted by any server, with the tools in the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from adapter.conversation.guardrails.call_history import UNREAD, CallHistory, build_call_key, read_history
from adapter.core.events import Json, JsonObject
from adapter.grammars.constraint_mode import Constraint
from adapter.parsing.formats import DEFAULT_FORMAT, get_format
from adapter.parsing.formats.hermes import encode_calls
from adapter.parsing.parse_policy import APPROVED
from adapter.prompting.intent.guided_choice import (
    GuidedChoice,
    GuidedChoiceSettings,
    plan_guided_choice,
    plan_next_call,
)
from adapter.protocols.conversation_cache import Conversation, copy_messages
from adapter.protocols.custom_and_legacy_tools import FUNCTIONS, convert_tools_to_functions
from adapter.protocols.exchange_guardrails import EXTENSION, ExchangeGuardrails
from adapter.protocols.llama_cpp_completion import has_lazy_grammar
from adapter.protocols.media_parts import adapt_media
from adapter.protocols.plain_text_messages import find_last_request, has_misplaced_system, list_last_calls
from adapter.protocols.reasoning_budget import find_requested_budget, remove_budget
from adapter.protocols.request_body_parsing import MAX_TEXT, check_size
from adapter.protocols.request_constraint import Enforcement, build_enforcement, build_lazy_constraint_fields
from adapter.protocols.request_errors import RequestError, require_type
from adapter.protocols.request_prompt import build_prompt
from adapter.protocols.request_tools import ToolRequest, apply_shortlist, choose_request_format, parse_tool_request
from adapter.protocols.template_prompt import CONTINUED, Prefill, TemplatePrompt, continue_last_message
from adapter.protocols.translated_request import ClientSettings, FollowUp, ParserSettings, TranslatedRequest
from adapter.protocols.translation_options import CONSTRAINTS, TranslationOptions
from adapter.protocols.usage import get_object
from adapter.tools.tool_set import ToolSet

MAX_ANSWERS = 128
"""Maximum number of answers to one request (``n``), as in OpenAI's API."""


_NOT_FORCED = (None, "auto", "none")
"""Values of ``tool_choice`` that force no call, and so have no effect if the request has no tools."""


def needs_translation(body: Json, options: TranslationOptions | None = None) -> bool:
    """Return whether a request must be translated: it has tools, calls, content parts of other APIs, or roles or system
    messages that a chat template may reject, or the user has set a reasoning budget."""
    if not isinstance(body, dict):
        return False
    messages = body["messages"] if isinstance(body.get("messages"), list) else []
    return (
        bool(body.get("tools") or body.get("functions"))
        or (options is not None and options.get_budgets(body).reasoning is not None)
        or has_misplaced_system(messages)
        or adapt_media(messages, ()) != messages
        or any(
            isinstance(message, dict)
            and (
                message.get("role") not in ("system", "user", "assistant")
                or bool(message.get("tool_calls") or message.get("function_call"))
            )
            for message in messages
        )
    )


def remove_empty_tools(body: JsonObject) -> JsonObject:
    """Return the request without fields for tools if it has none, because vLLM rejects an empty list and Groq null."""
    if body.get("tools"):
        return body
    unused = {"tools", "parallel_tool_calls"} | ({"tool_choice"} if body.get("tool_choice") in _NOT_FORCED else set())
    return {key: value for key, value in body.items() if key not in unused} if unused & body.keys() else body


def adapt_limit(body: JsonObject, kind: str | None) -> JsonObject:
    """Return the request with its limit as ``max_tokens`` for Ollama, which ignores ``max_completion_tokens``."""
    limit = body.get("max_completion_tokens")
    return body if limit is None or kind != "ollama" else {**body, "max_tokens": limit}


def needs_parsing(body: JsonObject, options: TranslationOptions, *, splits: bool) -> bool:
    """Return whether the answer to an untranslated request must be parsed.

    ``splits`` is True if the server separates reasoning from the text. If the server does not, answers of known model
    families are parsed. Answers of gpt-oss are always parsed, because some servers leave its channel tokens in the
    text.
    """
    format = choose_request_format(body, options)
    return format == "harmony" or (format is not None and not splits)


def build_passthrough_request(body: JsonObject, options: TranslationOptions) -> TranslatedRequest:
    """Build a request that is sent unchanged although its answer is parsed. Raises RequestError if it is invalid."""
    body = adapt_limit(body, options.kind)
    request = ToolRequest(
        body, FUNCTIONS, ToolSet(), ToolSet(), False, get_format(choose_request_format(body, options) or DEFAULT_FORMAT)
    )
    translated = _build_unchanged_request(_with_reasoning_budget(request, options), options)
    generation_prompt = options.prompt.generation_prompt
    parsing = replace(translated.parsing, format=request.format.name, generation_prompt=generation_prompt)
    body, shortened = options.get_budgets(body).fit_body(translated.body)
    turn = Conversation(request.messages).hash_messages()
    return replace(translated, body=body, turn=turn, parsing=parsing, shortened=shortened)


def translate_chat_request(
    body: JsonObject,
    options: TranslationOptions,
    json_bytes: int | None = None,
    conversation: Conversation | None = None,
) -> TranslatedRequest:
    """Translate a chat request. Raises RequestError if it is invalid.

    ``json_bytes`` is the length of ``body`` as JSON, if known. ``conversation`` has the messages of ``body``, which no
    other code may change; without it, the messages are copied.
    """
    if json_bytes is None or json_bytes > MAX_TEXT:
        check_size(body)
    require_type(bool, body.get("stream"), "stream")
    body = adapt_limit(body, options.kind)
    conversations = options.memory.conversations
    if conversation is None:
        conversation = conversations.continue_longest(Conversation(copy_messages(body.get("messages"))))
    unsupported = options.unsupported_media
    messages = adapt_media(conversation.messages, unsupported, conversation.get_built(unsupported, 0))
    functions, kinds = convert_tools_to_functions({**body, "messages": messages}, conversation.known)
    if functions["messages"] is not conversation.messages:
        conversation = conversations.continue_longest(Conversation(functions["messages"]))
    conversation.store_built(unsupported, len(conversation.compared))
    options = options.with_model_setup(str(body.get("model") or ""))
    if kinds is not FUNCTIONS:
        options = replace(options, native=False, stream_arguments=False)
    request = parse_tool_request(functions, kinds, options, conversation)
    conversations.store(conversation)
    return _translate(_with_reasoning_budget(request, options), options)


def _translate(request: ToolRequest, options: TranslationOptions) -> TranslatedRequest:
    if options.native:
        return _build_native_request(request, options)
    if options.guided_choice is not None and request.allowed and options.may_guide_choice(request.body):
        return _build_assisted_request(request, options, options.guided_choice)
    with_all_tools, request = request, apply_shortlist(request, options)
    enforcement = build_enforcement(request, options)
    prompted = build_prompt(request, options, enforcement)
    prefill = _PREFILLS.get(options.kind or "", "message")
    is_prefilled = bool(request.messages) and not request.messages[-1].get("tool_calls")
    body = continue_last_message(prompted.body, prefill) if is_prefilled else prompted.body
    body |= enforcement.fields
    waits_for_calls = enforcement.constraint == "arguments" and options.constraints.waits_for_calls
    if waits_for_calls and (
        prompted.template_prompt or all(isinstance(each["content"], str) for each in prompted.messages)
    ):
        body |= build_lazy_constraint_fields(request, options, enforcement)
    translated = _build_unchanged_request(request, options)
    may_fall_back = prompted.template_prompt and options.prompt.mode == "auto"
    return replace(
        translated,
        body=body,
        shortened=prompted.shortened,
        turn=prompted.beginning,
        beginning=prompted.beginning,
        parsing=replace(
            translated.parsing,
            policy=APPROVED.name if enforcement.fields else options.policy,  # enforced calls may have no markers
            generation_prompt=_find_generation_prompt(body, options, prompted.template_prompt),
            reply=enforcement.reply if enforcement.may_reply else None,
            format=request.format.name,
            control_tokens=options.prompt.control_tokens,
        ),
        follow_up=_follow_up(request, options, enforcement),
        memory=options.memory,
        as_text=partial(_translate_as_text, with_all_tools, options) if may_fall_back else None,
    )


def _translate_as_text(request: ToolRequest, options: TranslationOptions) -> TranslatedRequest:
    """Translate a request without the model's chat template."""
    return _translate(request, options.with_prompt(template_prompt=None))


_PREFILLS: dict[str, Prefill] = {"llama.cpp": "completion", "vllm": "final_message"}


def _with_reasoning_budget(request: ToolRequest, options: TranslationOptions) -> ToolRequest:
    """Add the reasoning budget to the request, also in the field that the server expects. A budget of 0 turns reasoning
    off."""
    budget = find_requested_budget(request.body, options.get_budgets(request.body).reasoning)
    if budget is None:
        return request
    body = remove_budget(request.body) | ({options.reasoning_field: budget} if options.reasoning_field else {})
    if budget == 0:
        body["chat_template_kwargs"] = {"enable_thinking": False, **(body.get("chat_template_kwargs") or {})}
    return replace(request, body=body, reasoning_budget=budget)


def _find_generation_prompt(
    body: JsonObject, options: TranslationOptions, template: TemplatePrompt | None
) -> str | None:
    if body.keys() & {*CONSTRAINTS, CONTINUED} and not has_lazy_grammar(body):
        return ""
    if options.prompt.generation_prompt is not None or template is None or template.transport == "vllm":
        return options.prompt.generation_prompt
    return template.traits.generation_prompt


def _follow_up(request: ToolRequest, options: TranslationOptions, enforcement: Enforcement) -> FollowUp:
    return FollowUp(
        guardrails=_start_guardrails(request, options, enforcement.constraint),
        must_call=request.must_call,
        constraint=enforcement.constraint if request.is_single_choice else "off",
        enforce=options.constraints.enforce,
        choices=enforcement.choices,
        previous_calls=(
            frozenset(build_call_key(*call) for call in list_last_calls(request.messages))
            if request.is_single_choice
            else frozenset()
        ),
        shortlist=request.shortlist,
    )


def _start_guardrails(
    request: ToolRequest, options: TranslationOptions, constraint: Constraint = "off", *, is_native: bool = False
) -> ExchangeGuardrails | None:
    enforces = options.constraints.enforce is not None and not is_native
    return options.retry_policy.start_exchange(
        request.body,
        request.allowed,
        request.described,
        encode_calls if is_native else request.format.encode_calls,
        is_enforced=enforces and constraint in ("prefer", "required"),
        may_enforce=enforces and options.constraints.mode != "off" and not request.body.keys() & CONSTRAINTS,
        requires_valid_calls=enforces and constraint == "arguments",
        must_call=request.must_call,
        history=_read_history(request, options),
    )


def _read_history(request: ToolRequest, options: TranslationOptions) -> CallHistory | None:
    """Return the call history of a conversation, reading only messages that no earlier request had."""
    if not (request.allowed and options.retry_policy.on):
        return None
    before = request.conversation.get_built(request.allowed, UNREAD)
    read = read_history(request.messages, request.allowed, before)
    request.conversation.store_built(request.allowed, read)
    return read.history


def _build_unchanged_request(request: ToolRequest, options: TranslationOptions) -> TranslatedRequest:
    """Return a request with the client's body, without this server's extension field."""
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
            answers=_count_answers(body),
            kinds=request.kinds,
        ),
        parsing=ParserSettings(
            policy=options.policy,
            stream_arguments=options.stream_arguments,
            is_restricted=request.is_restricted,
            described=request.described if request.is_restricted else ToolSet(),
        ),
        reasoning_budget=request.reasoning_budget,
        prefill=_PREFILLS.get(options.kind or "", "message"),
        observation=options.observation,
        clock=options.retry_policy.clock,
    )


def _build_native_request(request: ToolRequest, options: TranslationOptions) -> TranslatedRequest:
    """Return the unchanged request for a model server that itself describes the tools and parses the calls."""
    guardrails = _start_guardrails(request, options, is_native=True)
    as_request = _build_unchanged_request(request, options)
    body, shortened = options.get_budgets(request.body).fit_body(_with_system_role(as_request.body))
    if get_object(body.get("tool_choice")).get("type") == "allowed_tools":  # unknown to vLLM and llama.cpp
        tools = [tool.to_openai() for tool in request.allowed.values()]
        body = {**body, "tools": tools, "tool_choice": "required" if request.must_call else "auto"}
    return replace(
        as_request,
        body=body,
        shortened=shortened,
        turn=request.conversation.hash_messages(),
        is_native=True,
        follow_up=FollowUp(guardrails=guardrails, must_call=request.must_call),
        as_text=partial(_translate, request, replace(options, native=False)),
    )


def _with_system_role(body: JsonObject) -> JsonObject:
    """Return the request with ``system`` instead of the role ``developer``, which few servers know."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not any(each.get("role") == "developer" for each in messages):
        return body
    renamed = [each | {"role": "system"} if each.get("role") == "developer" else each for each in messages]
    return {**body, "messages": renamed}


def _build_assisted_request(
    request: ToolRequest, options: TranslationOptions, settings: GuidedChoiceSettings
) -> TranslatedRequest:
    """Build the request for a model that is too small to choose a tool.

    The model must call the tool that matches the user's message best, or reply in words if no tool matches. After that,
    it must make the further calls required by the message.
    """
    options = replace(options, guided_choice=None)
    user_text, has_result = find_last_request(request.messages)
    assist = GuidedChoice()
    if request.must_call or not has_result:
        assist = plan_guided_choice(user_text, request.allowed, settings, must_call=request.must_call)
    if not assist.tools:
        return _translate(replace(request, allowed=ToolSet(), must_call=False), options)
    return _build_planned_request(request, options, assist, user_text)


def _build_planned_request(
    request: ToolRequest, options: TranslationOptions, assist: GuidedChoice, user_text: str
) -> TranslatedRequest:
    constrained = replace(
        options.with_prompt(style="small").with_constraints(mode="required", choices=assist.choices),
        fields={"temperature": 0, **options.fields},
    )
    tools = [tool.to_openai() for tool in assist.tools.values()]
    only = {**request.body, "tools": tools, "tool_choice": "required"}
    try:
        planned = _translate(parse_tool_request(only, request.kinds, constrained, request.conversation), constrained)
    except RequestError:  # there is no grammar for these tools, so the model may call only them, without a constraint
        return _translate(replace(request, allowed=ToolSet(request.allowed[name] for name in assist.tools)), options)
    follow_up = replace(planned.follow_up, must_call=request.must_call)
    if options.constraints.enforce is not None and request.is_single_choice and request.is_parallel:
        follow_up = replace(follow_up, next_call=partial(_build_next_call, request, options, user_text))
    return replace(planned, follow_up=follow_up)


def _build_next_call(
    request: ToolRequest, options: TranslationOptions, user_text: str, calls: Sequence[tuple[str, JsonObject]]
) -> TranslatedRequest | None:
    """Return the request for the call that follows ``calls`` in the same answer, or None if no call is left."""
    assist = plan_next_call(user_text, request.allowed, calls)
    return _build_planned_request(request, options, assist, user_text) if assist.tools else None


def _count_answers(body: JsonObject) -> int:
    number = body.get("n")
    if number is None:
        return 1
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= MAX_ANSWERS:
        raise RequestError(f"'n' must be between 1 and {MAX_ANSWERS}, got {str(number)[:40]!r}", "n")
    return number
