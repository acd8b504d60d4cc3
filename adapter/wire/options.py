"""How requests are translated: what a user chose, and what is known of the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from adapter.constraints.grounding import Ground
from adapter.constraints.modes import Constraint, get_constraint
from adapter.constraints.shapes import Choices
from adapter.conversation.guardrails.catalogue import checked_retries
from adapter.dialects import Dialect
from adapter.formats import DEFAULT_FORMAT, FROM_TEMPLATE, get_format
from adapter.prompting.choosing import Parts, check_guide
from adapter.prompting.prompt import system_prompt
from adapter.prompting.setups import Setup
from adapter.reading.policy import get_policy
from adapter.tools.definition import Tool, ToolSet
from adapter.values.errors import UsageError
from adapter.values.events import Json, JsonObject
from adapter.values.fields import field, frozen, replace
from adapter.wire.memory import Memory
from adapter.wire.own_prompt import PROMPT_MODES, OwnPrompt
from adapter.wire.recorded import Exchange, Listen
from adapter.wire.watching import Asking

CLIENTS_TOOLS = Dialect("client", "the client's own tools", ())
"""What prompts say about tools that are none of ours: nothing but their definitions."""

CONSTRAINTS = frozenset({"grammar", "response_format", "json_schema"})
"""Fields by which a client or we make a server write one thing and nothing else."""


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


@frozen
class Options:
    """``format``: how the model writes calls; None goes by ``template`` (its chat template), then by its name;
    `FROM_TEMPLATE` is for `checked`.
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
    recognised: str | None = None
    """The format that was found to fit the template, where somebody looked; it goes before what the template's text
    tells."""
    from_template: bool = False
    """The format derived from the template is wanted, also where a table knows it."""
    model: str | None = None
    """What the model is really called, where requests may name it as they like."""
    control_tokens: tuple[str, ...] = ()
    """What the model's server tells of its control tokens: they act in no result and no message."""
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
    counts_tokens: bool = False
    """The server is asked how many tokens a stream took, also where the client does not want to know."""
    listen: Listen | None = None
    """Who looks on while an answer comes."""

    @property
    def style_used(self) -> str:
        """How the prompt describes tools, where it does so in words."""
        is_held = self.enforce is not None and self.constraint in ("prefer", "required")
        return self.style or ("bare" if is_held else "trained")

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
    if options.max_tools is not None and (not isinstance(options.max_tools, int) or options.max_tools < 1):
        raise UsageError(f"max_tools cannot be {options.max_tools!r}; give a number from 1 on")
    checked_retries(options.asking.retries)
    if options.prompt not in PROMPT_MODES:
        raise UsageError(f"unknown prompt {options.prompt!r}; expected {', '.join(PROMPT_MODES)}")
    if options.prompt == "own" and (options.style or options.prompts):
        raise UsageError("a style, or prompts of your own, describe tools in words; leave them out, or prompt 'own'")
    if options.format == FROM_TEMPLATE:
        options = replace(options, format=None, from_template=True)
    format = get_format(options.format or DEFAULT_FORMAT).name
    system_prompt(CLIENTS_TOOLS, format, options.style_used, tools=[{"name": "any"}], prompts=options.prompts)
    return replace(options, format=format) if options.format else options
