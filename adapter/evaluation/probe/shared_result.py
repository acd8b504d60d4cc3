"""Convert a probe's result to JSON that can be published, without user names, paths, hosts and keys.

``adapter probe --share`` writes this JSON. The table in docs/models.md is generated from ``fixtures/shared_results``.
"""

from __future__ import annotations

import getpass
import platform
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError, model_validator

from adapter.backends.endpoint_discovery import Kind
from adapter.backends.engine_details import EngineDetails, find_public_family
from adapter.core.errors import UsageError
from adapter.core.text.redaction import Redactor
from adapter.core.validation_errors import explain_validation_error
from adapter.core.version import __version__
from adapter.evaluation.probe.probe_task_runner import MAX_TOKENS, SEED, TEMPERATURE
from adapter.evaluation.probe.successive_halving import Probe, SetupTrial
from adapter.evaluation.probe.tasks import TASKS, TaskKind
from adapter.grammars.constraint_mode import Constraint
from adapter.parsing.formats import is_format_file
from adapter.prompting.system_prompt import Style

KINDS: tuple[TaskKind, ...] = get_args(TaskKind)

_PRIVATE_FORMS = {
    "a path": re.compile(r"[/\\~]|^[a-z]:|\.gguf\b", re.IGNORECASE),
    "a host": re.compile(
        r"localhost|\b\d+(?:\.\d+){3}\b|[\da-f]*:[\da-f]*:|\w:\d"
        r"|\.(?:com|org|net|io|ai|dev|local|lan|home|internal|corp)\b",
        re.IGNORECASE,
    ),
    "a user name": re.compile(r"@|\\"),
    "a key": re.compile(r"[A-Za-z0-9_-]{33,}"),
}
"""Patterns for private text by its kind. API keys have at least 33 characters, more than llama.cpp's version names."""


def find_private_form(text: str, names: tuple[str, ...] = ()) -> str:
    """Return the kind of private text that ``text`` looks like, or "" if it looks public.

    ``names`` are private words, such as the user's name.
    """
    for form, pattern in _PRIVATE_FORMS.items():
        if pattern.search(text):
            return form
    if Redactor({}).redact(text) != text:
        return "a key"
    words = re.split(r"[^\w]+", text.casefold())
    return next(("a user or host name" for name in names if name.casefold() in words), "")


def list_machine_names() -> tuple[str, ...]:
    """Return the names of the user, the user's home folder and this machine."""
    names = {platform.node(), platform.node().partition(".")[0]}
    with suppress(OSError, KeyError, RuntimeError):  # the user may have no entry in the system's database, or no home
        names |= {getpass.getuser(), Path.home().name}
    return tuple(sorted(name for name in names if len(name) > 1))


def _check_public(text: str) -> str:
    if form := find_private_form(text):
        raise ValueError(f"{text!r} looks like {form}, which must not be published")
    return text


PublicText = Annotated[str, Field(max_length=60, pattern=r"^[\w .()+-]*$"), AfterValidator(_check_public)]
"""Text that may be published. Validation fails for text that looks private."""


class _SharedTable(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SharedEngine(_SharedTable):
    """The inference engine that ran the model. ``version`` is "" if the engine does not report its version."""

    kind: Kind
    version: PublicText = ""


class SharedModel(_SharedTable):
    """The tested model. All fields except the family can be empty.

    ``family`` is the public name of the model family, such as ``qwen3``. ``template_hash`` has the first 16 hexadecimal
    digits of the chat template's SHA-256.
    """

    family: Annotated[PublicText, Field(min_length=1)]
    parameters: NonNegativeInt | None = None
    quantization: PublicText = ""
    template_hash: Annotated[str, Field(pattern=r"^([0-9a-f]{16})?$")] = ""


class SharedSettings(_SharedTable):
    """The settings of a tool-calling setup. ``template``: whether the model's chat template described the tools."""

    format: PublicText
    style: Style
    constraint: Constraint
    native: bool
    template: bool
    temperature: float = TEMPERATURE
    seed: int = SEED
    max_tokens: int = MAX_TOKENS


class SharedScore(_SharedTable):
    """A setup's score in one kind of task: how many tasks, valid answers, correct answers and unnecessary calls."""

    tasks: NonNegativeInt
    valid: NonNegativeInt
    correct: NonNegativeInt
    unnecessary: NonNegativeInt

    @model_validator(mode="after")
    def _check_counts(self) -> Self:
        if not self.correct <= self.valid <= self.tasks or self.unnecessary > self.tasks:
            raise ValueError("expected correct <= valid <= tasks and unnecessary <= tasks")
        return self


class SharedTrial(_SharedTable):
    """A tool-calling setup with its score for each kind of task."""

    settings: SharedSettings
    scores: dict[TaskKind, SharedScore]

    @property
    def tasks(self) -> int:
        return sum(score.tasks for score in self.scores.values())

    @property
    def correct(self) -> int:
        return sum(score.correct for score in self.scores.values())


class SharedResult(_SharedTable):
    """The publishable result of a probe.

    ``made`` is the date. ``is_whole``: whether all tasks were run. ``native`` is the trial of the server's own tool
    calling. ``best`` is the trial of the best setup, possibly the native one, or None if no setup produced a correct
    call.
    """

    version: Literal[1] = 1
    adapter: PublicText = __version__
    made: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    is_whole: bool
    engine: SharedEngine
    model: SharedModel
    native: SharedTrial
    best: SharedTrial | None = None

    @property
    def file_name(self) -> str:
        """The usual name of the result's file, from the model, its quantization and the engine."""
        parts = (self.model.family, format_parameters(self.model.parameters), self.model.quantization, self.engine.kind)
        return "-".join(re.sub(r"[^\w.]+", "-", part).lower() for part in parts if part) + ".json"

    def to_json(self) -> str:
        return self.model_dump_json(indent=2) + "\n"


def format_parameters(parameters: int | None) -> str:
    """Abbreviate a model's number of parameters, like ``135M`` or ``7.6B``. Returns "" if the number is unknown."""
    if parameters is None:
        return ""
    for unit, size in (("B", 10**9), ("M", 10**6), ("K", 10**3)):
        if parameters >= size:
            return f"{parameters / size:.{1 if parameters < 10 * size else 0}f}".removesuffix(".0") + unit
    return str(parameters)


def check_shareable(engine: EngineDetails, format: str) -> None:
    """Check that a probe's result can be published.

    Raises UsageError if ``format`` is a file, if the model's family is unknown, or if the result would contain private
    text.
    """
    if is_format_file(format):
        raise UsageError(
            f"--share needs a built-in format, because other users do not have the file {format}; omit --share"
        )
    if not engine.family:
        raise UsageError(
            "--share: the model's family is unknown, because the server does not report it and the model's name does "
            "not contain it. Serve the model under its public name, such as qwen3-8b, or omit --share."
        )
    for label, text in (("family", engine.family), ("quantization", engine.quantization), ("version", engine.version)):
        if text != find_public_family(text) and (form := find_private_form(text, list_machine_names())):
            raise UsageError(f"--share: the {label} {text!r} looks like {form}. Omit --share, or rename the model.")


def build_shared_result(found: Probe, engine: EngineDetails, template_hash: str, made: str) -> SharedResult:
    """Return the publishable result of a probe. ``made`` is the date, like 2026-05-31.

    Raises UsageError if a string in the result looks private.
    """
    best = found.best
    try:
        return SharedResult(
            made=made,
            is_whole=not found.ended and len((best or found.before).outcomes) == len(TASKS),
            engine=SharedEngine(kind=engine.kind, version=engine.version),
            model=SharedModel(
                family=engine.family,
                parameters=engine.parameters,
                quantization=engine.quantization,
                template_hash=template_hash,
            ),
            native=_build_trial(found.before),
            best=None if best is None else _build_trial(best),
        )
    except ValidationError as error:
        raise UsageError(
            f"--share: the result cannot be published ({explain_validation_error(error)}); omit --share"
        ) from error


def _build_trial(trial: SetupTrial) -> SharedTrial:
    setup = trial.setup
    counts: dict[TaskKind, Counter[str]] = {kind: Counter() for kind in KINDS}
    for outcome in trial.outcomes:
        counts[outcome.task.kind].update(
            tasks=1, valid=outcome.valid, correct=outcome.right, unnecessary=outcome.needless
        )
    return SharedTrial(
        settings=SharedSettings(
            format=setup.format,
            style=setup.style,
            constraint=setup.constraint,
            native=setup.native,
            template=setup.uses_template,
        ),
        scores={
            kind: SharedScore(**{name: count[name] for name in SharedScore.model_fields})
            for kind, count in counts.items()
        },
    )
