"""Define the settings for translating requests: the user's settings, and properties of the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from adapter.conversation.guardrails.guardrails import RETRIES
from adapter.conversation.guardrails.registry import parse_guardrails, validate_max_calls, validate_retries
from adapter.core.callback_checks import require_sync
from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.dialects import Dialect
from adapter.grammars.constraint_mode import Constraint, parse_constraint_mode, validate_guide_mode
from adapter.grammars.schema_ir import Choices
from adapter.parsing.formats import DEFAULT_FORMAT, FROM_TEMPLATE, get_format
from adapter.parsing.parse_policy import get_policy
from adapter.prompting.calling_setup import CallingSetup
from adapter.prompting.intent.guided_choice import GuidedChoiceSettings
from adapter.prompting.system_prompt import system_prompt
from adapter.protocols.conversation_cache import VerbatimCallCache
from adapter.protocols.exchange_guardrails import RetryPolicy
from adapter.protocols.grounding_constraint import Ground
from adapter.protocols.reasoning_budget import SERVER_FIELDS
from adapter.protocols.recorded_exchange import Observation, RecordedExchange
from adapter.protocols.template_prompt import PROMPT_MODES, TemplatePrompt
from adapter.protocols.token_budgets import Budgets, ContextBudget, validate_context_budget, validate_reasoning_budget
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet

CLIENTS_TOOLS = Dialect("client", "the client's own tools", ())
"""Dialect of a client's own tools. Prompts describe these tools only by their definitions."""

CONSTRAINTS = frozenset({"grammar", "response_format", "json_schema"})
"""Request fields that constrain the whole answer."""


class ConstraintBuilder(Protocol):
    """A callback that builds the request fields that make a server enforce a call to one of ``tools``, in ``format``.

    Returns an empty dict if the server cannot enforce it. ``choices`` limits argument values, ``reply`` is a further
    tool for replying in words, and ``several`` allows several calls. If ``waits`` is True, the constraint applies only
    after the model begins a call.
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
    ) -> JsonObject: ...


@dataclass(frozen=True, slots=True)
class PromptSettings:
    """Settings for describing tools to the model, and the format of its calls.

    ``style`` and ``prompts`` (see `system_prompt`) rule out the model's own chat template: if either is set, the prompt
    is generated. The default style is ``bare`` if calls are enforced, otherwise ``trained``.
    """

    format: str | None = None
    """Format of the model's calls. If it is None, the format is detected from ``template``, the chat template, or else
    from the model's name. `validate_options` replaces `FROM_TEMPLATE`.
    """
    template: str | None = None
    recognized: str | None = None
    """The format detected by probing the template. It takes precedence over a guess from the template's text."""
    from_template: bool = False
    """True to derive the format from the template, even if the model name is known."""
    model: str | None = None
    """The model's actual name, for servers that accept any name in requests."""
    control_tokens: tuple[str, ...] = ()
    """Control tokens reported by the server. They are escaped in messages and results."""
    style: str | None = None
    prompts: str | None = None
    mode: str = "auto"
    """The way to describe tools, one of `PROMPT_MODES`."""
    template_prompt: TemplatePrompt | None = None
    """The model's chat template; None if it cannot be used."""
    generation_prompt: str | None = None
    """The end of the prompt rendered by the chat template, which may open the reasoning. None if it is unknown."""
    max_tools: int | None = None
    """Maximum number of tools in the prompt, or None for all. `adapter.prompting.tool_shortlist` chooses them."""

    @property
    def may_use_template(self) -> bool:
        """True if the chat template may be used, because no setting requires a generated prompt."""
        return self.mode != "words" and not self.style and not self.prompts


@dataclass(frozen=True, slots=True)
class ConstraintSettings:
    """Settings that decide whether a grammar limits the model's output to valid calls."""

    mode: Constraint | None = None
    """A mode of `adapter.grammars.constraint_mode`. None enforces a call only if the request requires one."""
    enforce: ConstraintBuilder | None = None
    """Builds the request fields that make the server enforce a call."""
    waits_for_calls: bool = False
    """True if the server is llama.cpp. Its grammars can be applied only after a call begins."""
    grounded: bool = False
    """True to limit arguments of an enforced call, such as paths, to values from the conversation."""
    ground: Ground | None = None
    """Function that returns the allowed values of arguments (`adapter.protocols.grounding_constraint`)."""
    choices: Choices | None = None
    """The allowed values of parameters, if they are already determined."""


@dataclass(slots=True)
class RejectedFeatures:
    """Features that the model server has rejected. Later requests do without them."""

    rejects_budget: bool = False
    """True if the server rejected a reasoning budget."""
    toolless: set[str] = field(default_factory=set)
    """Models whose tools the server rejected."""


@dataclass(frozen=True, slots=True)
class TranslationOptions:
    """All settings that affect the translation of a request: the user's settings, and the settings detected for the
    model."""

    prompt: PromptSettings = field(default_factory=PromptSettings)
    constraints: ConstraintSettings = field(default_factory=ConstraintSettings)
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
    observation: Observation = field(default_factory=Observation)
    policy: str = "safe"
    """The parse policy, as for `Parser`."""
    stream_arguments: bool = False
    """True to forward arguments while the model writes them."""
    native: bool = False
    """True to send the tools to the server, which parses the calls. Calls left in the text are parsed here."""
    fields: Mapping[str, Json] = field(default_factory=dict)
    """Fields added to each request that does not contain them."""
    memory: VerbatimCallCache = field(default_factory=VerbatimCallCache)
    """The text written by the model for calls that clients send back."""
    setup_of: Callable[[str], CallingSetup | None] | None = None
    """Function that returns the best known setup for a model name."""
    unsupported_media: frozenset[str] = frozenset()
    """Media that the model does not accept according to its server: ``image``, ``audio``."""
    setups: Mapping[str, CallingSetup] = field(default_factory=dict)
    """The user's setup for each model name, which takes precedence over ``setup_of``."""
    budgets: Budgets = field(default_factory=Budgets)
    kind: str | None = None
    """The kind of model server, if it is known."""
    rejected: RejectedFeatures = field(default_factory=RejectedFeatures)
    """Features that the model server has rejected so far."""
    model_budgets: Mapping[str, Budgets] = field(default_factory=dict)
    """The user's budgets for each model name, which take precedence over ``budgets``."""
    guide: str = "auto"
    """Mode of guided tool choice, one of `GUIDE_MODES`."""
    guided_choice: GuidedChoiceSettings | None = None
    """Settings of guided tool choice, for a model that is too small to choose a tool; None if it is off."""

    @property
    def reasoning_field(self) -> str | None:
        """The model server's request field that limits the reasoning, or None if there is none."""
        return None if self.rejected.rejects_budget else SERVER_FIELDS.get(self.kind or "")

    @property
    def style_used(self) -> str:
        """The style of the generated prompt: the selected one or the default."""
        is_enforced = self.constraints.enforce is not None and self.constraints.mode in ("prefer", "required")
        return self.prompt.style or ("bare" if is_enforced else "trained")

    def may_guide_choice(self, body: JsonObject) -> bool:
        """Return whether guided tool choice is compatible with the settings and with this request."""
        prompt, constraints = self.prompt, self.constraints
        is_unset = (
            constraints.mode is None
            and prompt.may_use_template
            and prompt.template_prompt is None
            and not constraints.grounded
        )
        is_plain = not body.keys() & CONSTRAINTS and body.get("n") in (None, 1)
        return is_unset and is_plain and constraints.ground is None and constraints.enforce is not None

    def with_model_setup(self, model: str) -> TranslationOptions:
        """Return a copy in which settings that the user did not set come from the best known setup of ``model``."""
        setup = self.setups.get(model) or (self.setup_of(model) if self.setup_of else None)
        if setup is None:
            return self
        prompt, constraints = self.prompt, self.constraints
        is_unset = prompt.format is None and constraints.mode is None
        style = prompt.style or (None if setup.uses_template else setup.style)
        mode = constraints.mode or (setup.constraint if setup.constraint != "off" else None)
        return replace(
            self,
            prompt=replace(prompt, format=prompt.format or setup.format, style=style),
            constraints=replace(constraints, mode=mode),
            native=setup.native and is_unset and model not in self.rejected.toolless,
            budgets=Budgets(reasoning=setup.reasoning_budget).override(self.budgets),
        )

    def get_budgets(self, body: JsonObject) -> Budgets:
        """Return the user's token budgets for the model that the request names, or else the general ones."""
        return self.budgets.override(self.model_budgets.get(str(body.get("model") or "")))

    def with_prompt(self, **changes: Any) -> TranslationOptions:
        """Return a copy with changed fields of `PromptSettings`."""
        return replace(self, prompt=replace(self.prompt, **changes))

    def with_constraints(self, **changes: Any) -> TranslationOptions:
        """Return a copy with changed fields of `ConstraintSettings`."""
        return replace(self, constraints=replace(self.constraints, **changes))


SHARED_SETTINGS = (
    "format", "style", "prompt", "max_tools", "constraint", "policy", "stream_arguments", "guide", "guardrails",
    "retries", "reasoning_budget",
)  # fmt: skip
"""Settings of `build_options` that `adapter serve` and its deployment on Ray have under the same names."""


def build_options(
    *, format: str | None = None, style: str | None = None, prompts: str | None = None, prompt: str = "auto",
    max_tools: int | None = None, constraint: str | None = None, grounded: bool = False, ground: Ground | None = None,
    guardrails: str = "on", context_budget: ContextBudget = None, reasoning_budget: int | None = None,
    observe: Callable[[RecordedExchange], object] | None = None, limits: RetryPolicy, retries: int = RETRIES,
    **others: Any,
) -> TranslationOptions:  # fmt: skip
    """Build the options from settings with the names and values of `adapter serve`. The value ``auto`` means None.

    ``limits`` has the limits on retries that no other setting contains, and ``others`` has fields of
    `TranslationOptions`. Raises UsageError for an invalid setting.
    """
    format, style, constraint = (None if each == "auto" else each for each in (format, style, constraint))
    return validate_options(
        TranslationOptions(
            PromptSettings(format, style=style, prompts=prompts, mode=prompt, max_tools=max_tools),
            ConstraintSettings(parse_constraint_mode(constraint), grounded=grounded, ground=ground),
            replace(limits, on=parse_guardrails(guardrails), retries=retries),
            Observation(observe),
            budgets=Budgets(context_budget, reasoning_budget),
            **others,
        )
    )


def validate_options(options: TranslationOptions) -> TranslationOptions:
    """Check the options, and return them with the resolved format. Raises UsageError for an invalid option."""
    prompt = options.prompt
    get_policy(options.policy)
    parse_constraint_mode(options.constraints.mode)
    validate_guide_mode(options.guide)
    validate_context_budget(options.budgets.context)
    validate_reasoning_budget(options.budgets.reasoning)
    if prompt.max_tools is not None and (not isinstance(prompt.max_tools, int) or prompt.max_tools < 1):
        raise UsageError(f"max_tools must be at least 1, got {prompt.max_tools!r}")
    validate_retries(options.retry_policy.retries)
    validate_max_calls(options.retry_policy.max_calls)
    if options.constraints.ground is not None:
        require_sync(options.constraints.ground, "ground")
    if options.observation.observe is not None:
        require_sync(options.observation.observe, "observe")
    if prompt.mode not in PROMPT_MODES:
        raise UsageError(f"unknown prompt {prompt.mode!r}; expected {', '.join(PROMPT_MODES)}")
    if prompt.mode == "own" and (prompt.style or prompt.prompts):
        raise UsageError(
            "prompt 'own' cannot be combined with a style or custom prompts, which need a generated prompt"
        )
    if prompt.format == FROM_TEMPLATE:
        options = options.with_prompt(format=None, from_template=True)
    chosen_format = options.prompt.format
    format = get_format(chosen_format or DEFAULT_FORMAT).name
    system_prompt(CLIENTS_TOOLS, format, options.style_used, tools=[{"name": "any"}], prompts=prompt.prompts)
    return options.with_prompt(format=format) if chosen_format else options
