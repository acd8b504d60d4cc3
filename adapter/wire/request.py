"""An OpenAI chat request with tools as one that any server takes: the tools in the prompt, nothing else changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from adapter.constraints.grounding import Ground, conversational
from adapter.constraints.modes import Constraint, get_constraint
from adapter.constraints.replies import with_reply
from adapter.constraints.shapes import Choices
from adapter.dialects import Dialect
from adapter.formats import get_format, guess
from adapter.formats.hermes import encode_calls
from adapter.guardrails.guardrails import AskAgain
from adapter.guardrails.past import key_of, past_of
from adapter.prompting.choosing import Parts, check_guide, choose
from adapter.prompting.prompt import new_session, system_prompt
from adapter.prompting.setups import Setup
from adapter.prompting.shortlist import Shortlist, shortlist
from adapter.reading.policy import APPROVED, get_policy
from adapter.tools.definition import Tool, ToolSet
from adapter.values.errors import UsageError
from adapter.values.events import Json, JsonObject, ToolCall
from adapter.values.kept import Kept
from adapter.wire.definitions import MAX_KEPT, tool_set
from adapter.wire.errors import RequestError, checked_as
from adapter.wire.llama_cpp import is_lazy, without_grammar
from adapter.wire.memory import Memory
from adapter.wire.messages import has_strays, last_calls, last_request, plain_messages
from adapter.wire.own_messages import own_definitions, own_messages
from adapter.wire.own_prompt import MARKS, NOT_OWN, PROMPT_MODES, OwnPrompt, marked, own_prompt_for
from adapter.wire.recorded import Exchange
from adapter.wire.tool_kinds import FUNCTIONS, Kinds, as_functions
from adapter.wire.watching import EXTENSION, Asking, Watch, said_after

CLIENTS_TOOLS = Dialect("client", "the client's own tools", ())
"""What prompts say about tools that are none of ours: nothing but their definitions."""

DEFAULT_FORMAT = "hermes"
"""For models that nothing is known about: the format most models have seen."""

SESSION = new_session()
"""One for all requests: what a conversation's prompt begins with stays the same."""

_OURS = frozenset({"tools", "tool_choice", "parallel_tool_calls", MARKS, EXTENSION})
"""What a client says to us, or is not to say at all."""

CONSTRAINTS = frozenset({"grammar", "response_format", "json_schema"})
"""Fields by which a client or we make a server write one thing and nothing else."""

_PROMPTS: Kept[str] = Kept(MAX_KEPT)

MAX_DEPTH = 100
"""Of lists and objects in a request: a definition of a tool takes ten."""

MAX_VALUES = 1_000_000
"""In one body. Empty lists and the like take thirty times the memory that they take as text; a text with as many
commas and brackets fits no model."""

MAX_ANSWERS = 128
"""That one request may ask for (``n``), as at OpenAI."""

MAX_TEXT = 4_000_000
"""Characters in what a request says, images left out: a million tokens, more than models of today read."""


def read_body(content: bytes) -> JsonObject:
    """The JSON object that a client sent. Raises RequestError for anything else."""
    if sum(map(content.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise RequestError(f"the request's body has more than {MAX_VALUES} values: shorten the conversation")
    try:
        body = json.loads(content)
    except RecursionError:
        body = None
    except ValueError as error:
        raise RequestError(f"the request's body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise RequestError(f"the request's body must be a JSON object, at most {MAX_DEPTH} levels deep")
    level: list[Json] = [body]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for value in level
            for inner in (value.values() if isinstance(value, dict) else value)
            if isinstance(inner, dict | list)
        ]
    if level:
        raise RequestError(f"the request's body is nested more than {MAX_DEPTH} levels deep")
    return body


class Enforce(Protocol):
    """The request fields by which a server enforces a call of one of ``tools``, or of ``reply``; none where it cannot.

    ``format``: how it is written. ``several``: more than one call may be made. ``waits``: only once the model has
    begun one. ``each``: the tools of each of several calls.
    """

    def __call__(
        self,
        tools: ToolSet,
        choices: Choices | None = None,
        *,
        format: str = "hermes",
        reply: Tool | None = None,
        several: bool = False,
        waits: bool = False,
        each: Sequence[ToolSet] = (),
    ) -> JsonObject: ...


@dataclass(frozen=True, slots=True)
class Options:
    """``format``: how the model writes calls; None goes by ``template`` (its chat template), then by its name.
    ``style`` and ``prompts``: of `system_prompt`; None is ``bare`` where calls are enforced, else ``trained``.
    ``policy``: of `Parser`. ``stream_arguments``: hand on arguments while they are written. ``constraint``: how
    far the model is held to valid calls (see `adapter.constraints.modes`); None holds it where a request demands
    a call. ``enforce``: how that is said to the server. ``grounded``: an enforced call has only values that the
    conversation mentions, where an argument's name tells what it is; ``ground``: that somebody knows (see
    `adapter.constraints.grounding`).
    ``prompt``: whether the model is told of its tools by its own template, one of `PROMPT_MODES`; a ``style`` or
    ``prompts`` mean words. ``own``: how it gets that prompt; None where it cannot.
    ``native``: the tools go to the server, which reads the calls itself; those that it leaves in the text are
    read here. ``setup_of``: what is known to be best for the model that a request names.
    ``memory``: of what the model wrote, for the calls that clients send back."""

    format: str | None = None
    template: str | None = None
    model: str | None = None
    """What the model is really called, where requests may name it as they like."""
    style: str | None = None
    prompts: str | None = None
    prompt: str = "auto"
    own: OwnPrompt | None = None
    policy: str = "safe"
    stream_arguments: bool = False
    constraint: Constraint | None = None
    enforce: Enforce | None = None
    waits_for_calls: bool = False
    """The server is a llama.cpp, whose grammars can wait for a call to begin."""
    grounded: bool = False
    ground: Ground | None = None
    generation_prompt: str | None = None
    """What the chat template puts before the model's answer: it may have opened reasoning. None: not known."""
    fields: Mapping[str, Json] = field(default_factory=dict)
    """What the server is told besides, unless the client says otherwise."""
    native: bool = False
    setup_of: Callable[[str], Setup | None] | None = None
    guide: str = "auto"
    """Which models are helped to choose, one of `GUIDE_MODES`."""
    small: Parts | None = None
    """The help for a model that is too small to choose by itself; see `adapter.prompting.choosing`."""
    choices: Choices | None = None
    """The only values of parameters, where they were found already."""
    each: tuple[ToolSet, ...] = ()
    """The tools of each call, where an enforced answer has several."""
    asking: Asking = field(default_factory=Asking)
    """Which answers are asked again."""
    max_tools: int | None = None
    """Of a request with more only so many are described; see `adapter.prompting.shortlist`. None: all."""
    memory: Memory = field(default_factory=Memory)
    observe: Callable[[Exchange], object] | None = None
    """Told of each answer, when that is over."""

    @property
    def may_be_own(self) -> bool:
        """Whether nothing was said that means words."""
        return self.prompt != "words" and not self.style and not self.prompts

    def helps_with(self, body: JsonObject) -> bool:
        """Whether a small model is helped with this request: nothing was said that means another way."""
        is_left = self.constraint is None and self.may_be_own and self.own is None and not self.grounded
        is_plain = not body.keys() & CONSTRAINTS and body.get("n") in (None, 1)
        return is_left and is_plain and self.ground is None and self.enforce is not None

    def for_model(self, model: str) -> Options:
        """With what is known of the model, as far as nothing else was said."""
        setup = self.setup_of(model) if self.setup_of else None
        if setup is None:
            return self
        return replace(
            self,
            format=self.format or setup.format,
            style=self.style or (None if setup.own else setup.style),
            constraint=self.constraint or (setup.constraint if setup.constraint != "off" else None),
            native=setup.native and self.format is None and self.constraint is None,
        )


def checked(options: Options) -> Options:
    """``options``, if they can be used: raises UsageError at the start rather than with each request."""
    get_policy(options.policy)
    get_constraint(options.constraint)
    check_guide(options.guide)
    if options.prompt not in PROMPT_MODES:
        raise UsageError(f"unknown prompt {options.prompt!r}; expected {', '.join(PROMPT_MODES)}")
    if options.prompt == "own" and (options.style or options.prompts):
        raise UsageError("a style, or prompts of your own, describe tools in words: leave out --prompt own")
    format = get_format(options.format or DEFAULT_FORMAT).name
    system_prompt(CLIENTS_TOOLS, format, _style(options), tools=[{"name": "any"}], prompts=options.prompts)
    return replace(options, format=format) if options.format else options


@dataclass(frozen=True, slots=True)
class Request:
    """``body`` goes to the model's server; the rest is for reading its answer."""

    body: JsonObject
    tools: ToolSet
    """Those that may be called: none with ``tool_choice: "none"``."""
    parallel: bool = True
    stream: bool = False
    wants_usage: bool = False
    stream_arguments: bool = False
    answers: int = 1
    """How many were asked for."""
    kinds: Kinds = FUNCTIONS
    """In which form the client gets calls."""
    policy: str = "safe"
    turn: str = ""
    """Tells this turn from others of the conversation, for the ids of its calls."""
    generation_prompt: str | None = None
    """As of `Options`; "" where the answer begins with a call because the server enforces that."""
    is_restricted: bool = False
    """Only some of the described tools may be called: calls of others are text."""
    reply: Tool | None = None
    """By which the model, held to calls, says something."""
    is_native: bool = False
    """The server reads calls, too: those are handed on."""
    as_text: Callable[[], Request] | None = None
    """The same for a server that turns out to take no tools, where it was given them."""
    memory: Memory = field(default_factory=Memory)
    observe: Callable[[Exchange], object] | None = None
    format: str = DEFAULT_FORMAT
    constraint: Constraint = "off"
    enforce: Enforce | None = None
    choices: Choices = field(default_factory=dict)
    made: frozenset[str] = frozenset()
    """The calls, as `key_of` puts them, whose results end the conversation."""
    watch: Watch | None = None
    """What of the answer is asked again; None: nothing."""
    few: Shortlist | None = None
    """Of many tools, those that are described."""
    lookups: int = 0
    """How often the model has searched among the others."""

    def looked_up(self, call: ToolCall, wrote: str) -> Request:
        """What to ask after a search among tools that are not described, whose result goes with it."""
        assert self.few is not None
        said = self.few.found(call.arguments.get("query"))
        result = get_format(self.format).encode_result(call.name, said, call.id)
        body = self.body | {"messages": said_after(self.body["messages"], wrote, result)}
        return replace(self, body=body, turn=f"{self.turn}+", lookups=self.lookups + 1)

    def again(self, ask: AskAgain, wrote: str) -> Request:
        """What to ask after an answer that was of no use, which read ``wrote``: the same, and what is said about it.

        Held to a call where one is to be made again and the server takes that. Not all that take it obey.
        """
        tools = ToolSet([self.tools[name] for name in ask.held_to if name in self.tools])
        held = self._held(tools) if tools and self.watch and self.watch.may_hold else None
        base = held or replace(self, turn=f"{self.turn}+")
        return replace(base, body=base.body | {"messages": said_after(base.body["messages"], wrote, ask.message)})

    def replying(self) -> Request | None:
        """What to ask when the model only repeated the calls whose results it has: the same, held to a reply."""
        return self._held(ToolSet([self.reply])) if self.reply else None

    def _held(self, tools: ToolSet) -> Request | None:
        try:
            fields = self.enforce(tools, self.choices, format=self.format) if self.enforce else {}
        except UsageError:  # too large, or nothing left to choose
            fields = {}
        if not fields:
            return None
        body = without_grammar(self.body) | fields
        turn = f"{self.turn}+"  # its calls need ids of their own
        return replace(self, body=body, turn=turn, policy=APPROVED.name, constraint="required", generation_prompt="")


def needs_translation(body: Json) -> bool:
    """Whether a request needs translating at all: it offers tools, speaks of calls made before, or has more to say by
    the system than a template may take."""
    if not isinstance(body, dict):
        return False
    messages = body["messages"] if isinstance(body.get("messages"), list) else []
    return (
        bool(body.get("tools") or body.get("functions"))
        or has_strays(messages)
        or any(
            isinstance(message, dict)
            and (
                message.get("role") in ("tool", "function")
                or bool(message.get("tool_calls") or message.get("function_call"))
            )
            for message in messages
        )
    )


def translate(body: JsonObject, options: Options) -> Request:
    """The request as it goes to the server. Raises RequestError for one that OpenAI would refuse as well."""
    if (size := _characters(body)) > MAX_TEXT:
        message = f"the request has {size:,} characters of text; at most {MAX_TEXT:,} are taken"
        raise RequestError(f"{message}: shorten its messages and tools", "messages")
    body, kinds = as_functions(body)
    options = options.for_model(str(body.get("model") or ""))
    if kinds is not FUNCTIONS:
        options = replace(options, native=False, stream_arguments=False)
    described = tool_set(body.get("tools"))
    allowed, must_call = _choice(body.get("tool_choice"), described)
    model = str(body.get("model") or "")
    guessed = options.format or guess(options.model or model, options.template) or guess(model) or DEFAULT_FORMAT
    format = get_format(guessed)
    parallel = body.get("parallel_tool_calls") is not False
    if options.native:
        return _native(body, described, allowed, options)
    if options.small is not None and allowed and options.helps_with(body):
        return _chosen(body, allowed, must_call, options, options.small)
    is_restricted = len(allowed) < len(described)
    few = shortlist_of(body, described, options.max_tools) if allowed and not is_restricted else None
    offered = allowed
    if few is not None:
        described = offered = few.shown
        allowed = few.all
    constraint = _constraint(body, options, must_call) if allowed else "off"
    enforces = options.enforce is not None
    watch = options.asking.watch(
        body,
        allowed,
        described,
        format.encode_calls,
        is_held=enforces and constraint in ("prefer", "required"),
        may_hold=enforces and options.constraint != "off" and not body.keys() & CONSTRAINTS,
        must_mend=enforces and constraint == "arguments",
    )
    reply = with_reply(described)[1] if options.constraint == "prefer" and options.enforce else None
    may_reply = reply is not None and constraint == "prefer"
    choices: Choices = {}
    if constraint != "off" and (options.grounded or options.ground):
        choices = conversational(allowed, body.get("messages") or [], options.ground)
    choices = {**choices, **(options.choices or {})}
    enforced: JsonObject = {}
    if options.enforce and constraint in ("prefer", "required"):
        # One call an answer is enough for a loop; small models that may make several do not stop.
        several = may_reply and body.get("parallel_tool_calls") is True
        each = options.each if body.get("parallel_tool_calls") is not False else ()
        may_say = reply if may_reply else None
        try:
            enforced = options.enforce(offered, choices, format=format.name, reply=may_say, several=several, each=each)
        except UsageError as error:
            raise RequestError(str(error), "tools") from error
    # All tools are described although only some may be called now: a beginning that stays the same is cached.
    shown = ToolSet([*described.values(), reply]) if reply else described
    order = _order(allowed, must_call, parallel, described)
    plain = {key: value for key, value in body.items() if key not in _OURS}
    own = None if options.own is None or not options.may_be_own else own_prompt_for(body, options.own)
    if options.choices is not None:
        order = ""  # the request itself is to stand before the answer
    if own is not None:
        # Words that are none of the template's only where nothing else holds the model to what was asked for.
        is_free = not must_call and not is_restricted
        order = "" if is_free or (enforced and constraint == "required") else order
        told = own_messages(body.get("messages"), own.traits, format, described, closing=order, memory=options.memory)
        messages = told.messages
        if allowed:
            plain["tools"] = own_definitions(body.get("tools"), shown, format)
        if "llama.cpp" in (own.way, own.server):
            plain["preserved_tokens"] = list(format.special_tokens)
        plain = marked({**options.fields, **plain, "messages": messages}, own, told.written)
    elif options.prompt == "own":
        raise RequestError(NOT_OWN, "tools")
    else:
        system = _prompt(shown, format.name, _style(options), options.prompts) if allowed else ""
        messages = plain_messages(body.get("messages"), format, system, order, described, options.memory)
        plain = {**options.fields, **plain, "messages": messages}
    if allowed and format.stops:
        plain["stop"] = _stops(body.get("stop"), format.stops)
    plain |= enforced
    policy = APPROVED.name if enforced else options.policy  # what is enforced may be a call without markers
    waits = constraint == "arguments" and options.waits_for_calls and (own is not None or _is_plain(messages))
    if options.enforce and waits:
        with suppress(UsageError):  # too large, or nothing left to choose: then it is free
            plain |= options.enforce(offered, choices, format=format.name, waits=True)
    before = options.generation_prompt
    if own is not None and own.way != "vllm" and before is None:
        before = own.traits.generation_prompt
    is_one = body.get("n") in (None, 1)  # of several answers none is asked for again
    return Request(
        body=plain,
        tools=allowed,
        parallel=parallel,
        stream=body.get("stream") is True,
        wants_usage=_wants_usage(body),
        stream_arguments=options.stream_arguments,
        answers=_answers(body),
        kinds=kinds,
        policy=policy,
        turn=_turn(messages),
        generation_prompt="" if plain.keys() & CONSTRAINTS and not is_lazy(plain) else before,
        is_restricted=is_restricted,
        reply=reply if may_reply else None,
        memory=options.memory,
        observe=options.observe,
        format=format.name,
        constraint=constraint if is_one else "off",
        enforce=options.enforce,
        choices=choices,
        made=frozenset(key_of(*call) for call in last_calls(body.get("messages"))) if is_one else frozenset(),
        watch=watch,
        few=few,
        as_text=partial(translate, body, replace(options, own=None)) if own and options.prompt == "auto" else None,
    )


def shortlist_of(body: JsonObject, tools: ToolSet, most: int | None) -> Shortlist | None:
    """By what the user said last, and which tools the conversation has used."""
    if most is None or len(tools) <= most:
        return None
    past = past_of(body.get("messages"))
    return shortlist(tools, past.request, most, {made.name for made in past.made})


def _characters(value: Json) -> int:
    """In all texts of ``value``; those of data URLs are images."""
    size, waiting = 0, [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                size += 0 if text.startswith("data:") else len(text)
            case list() as items:
                waiting += items
            case dict() as fields:
                waiting += fields.keys()
                waiting += fields.values()
    return size


def _chosen(body: JsonObject, allowed: ToolSet, must_call: bool, options: Options, parts: Parts) -> Request:
    """The request for a model that does not choose by itself: an answer in words, or a call of what was chosen."""
    messages = body.get("messages")
    options = replace(options, small=None)
    request, has_result = last_request(messages)
    chosen = None if has_result and not must_call else choose(request, allowed, must_call=must_call, parts=parts)
    if chosen is None or not chosen.tools:
        return translate({**body, "tool_choice": "none"}, options)
    held = replace(
        options,
        constraint="required",
        style="small",
        choices=chosen.choices,
        each=chosen.each,
        fields={"temperature": 0, **options.fields},
    )
    tools = [tool.to_openai() for tool in chosen.tools.values()]
    try:
        return translate({**body, "tools": tools, "tool_choice": "required"}, held)
    except RequestError:  # no grammar for these tools
        return translate(body, options)


def _native(body: JsonObject, described: ToolSet, allowed: ToolSet, options: Options) -> Request:
    """The request as it came: the server describes the tools and reads the calls."""
    watch = options.asking.watch(body, allowed, described, encode_calls, is_held=False, may_hold=False, must_mend=False)
    return Request(
        body={key: value for key, value in body.items() if key != EXTENSION},
        tools=allowed,
        parallel=body.get("parallel_tool_calls") is not False,
        stream=body.get("stream") is True,
        wants_usage=_wants_usage(body),
        stream_arguments=options.stream_arguments,
        answers=_answers(body),
        policy=options.policy,
        turn=_turn(body.get("messages")),
        is_restricted=len(allowed) < len(described),
        is_native=True,
        observe=options.observe,
        watch=watch,
        as_text=partial(translate, body, replace(options, native=False, setup_of=None)),
    )


def _wants_usage(body: JsonObject) -> bool:
    stream_options = body.get("stream_options")
    return isinstance(stream_options, dict) and stream_options.get("include_usage") is True


def _answers(body: JsonObject) -> int:
    number = body.get("n")
    if number is None:
        return 1
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= MAX_ANSWERS:
        raise RequestError(f"'n' must be a number from 1 to {MAX_ANSWERS}, got {str(number)[:40]!r}", "n")
    return number


def _turn(messages: Json) -> str:
    return hashlib.sha256(json.dumps(messages, default=str).encode("utf-8", "replace")).hexdigest()


def _is_plain(messages: list[JsonObject]) -> bool:
    """Whether a template can be filled with the messages as text: no images."""
    return all(isinstance(message["content"], str) for message in messages)


def _style(options: Options) -> str:
    return options.style or ("bare" if options.enforce and options.constraint in ("prefer", "required") else "trained")


def _constraint(body: JsonObject, options: Options, must_call: bool) -> Constraint:
    """What holds for this request: a constraint of the client's own excludes ours."""
    if options.constraint == "off" or body.keys() & CONSTRAINTS:
        return "off"
    return "required" if must_call else options.constraint or "off"


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
            return _some(tools, list(tool_set(listed))), mode == "required"
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


def _order(allowed: ToolSet, must_call: bool, parallel: bool, described: ToolSet) -> str:
    """What the request demands beyond the usual. At the end, where it leaves the prompt's beginning as it was."""
    which = " or ".join(allowed) if len(allowed) < len(described) else "one of the tools"
    one = "" if parallel else " Make one call only."
    if must_call:
        return f"Answer with a tool call of {which}.{one}"
    if allowed and len(allowed) < len(described):
        return f"You may call {which} now, no other tool.{one}"
    return one.strip() if allowed else ""


def _stops(stop: Json, formats: tuple[str, ...]) -> list[str]:
    own = [stop] if isinstance(stop, str) else checked_as(list, stop, "stop")
    return own + [each for each in formats if each not in own]


def _prompt(tools: ToolSet, format: str, style: str, prompts: str | None) -> str:
    """One text per set of tools: byte for byte the same each time, as the server's cache needs it."""

    def made() -> str:
        return system_prompt(CLIENTS_TOOLS, format, style, tools=tools, prompts=prompts, session=SESSION).strip()

    frozen = json.dumps([tool.to_openai() for tool in tools.values()], ensure_ascii=False)
    return _PROMPTS.of(frozen, made, format, style, prompts)
