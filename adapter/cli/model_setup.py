"""What a model is helped with to write calls: format, style, constraint, by what is said and known of it."""

from __future__ import annotations

from dataclasses import dataclass

from adapter.agent.prompt_setup import prompt_style_for
from adapter.backends import profiles
from adapter.backends.prompt_discovery import PromptDiscovery
from adapter.backends.small_model_check import SmallModelCheck
from adapter.cli.console import Console
from adapter.cli.model_loading import LoadedModel
from adapter.cli.run_settings import RunSettings
from adapter.core.errors import UsageError
from adapter.grammars.constraint_mode import Constraint, parse_constraint_mode
from adapter.parsing.formats import FROM_TEMPLATE, guess_format
from adapter.prompting.calling_setup import CallingSetup


@dataclass(frozen=True, slots=True)
class ModelSetup:
    """What a model needs to write calls.

    ``is_guided``: the request's words choose its tool, message by message. ``is_own``: its own template describes the
    tools.
    """

    format: str
    style: str
    constraint: Constraint | None
    is_native: bool = False
    is_guided: bool = False
    is_own: bool = False
    sees_images: bool = False


def resolve_model_setup(task: str | None, settings: RunSettings, served: LoadedModel, console: Console) -> ModelSetup:
    """What the command line says, else the model's profile, else what its name tells. ``task``: None in a chat."""
    constraint, setup = parse_constraint_mode(settings.constraint), _setup(settings, served, console)
    if setup is not None and setup.constraint != "off":
        constraint = constraint or setup.constraint
    is_native = setup is not None and setup.native and settings.format is None and constraint is None
    is_small = constraint is None and not is_native and _is_small(settings, served)
    if is_small and not served.is_small:
        console.note(SmallModelCheck(served.chat.endpoint, settings.guide).explanation(served.chat.model))
    if task is not None and (constraint == "required" or is_small):
        return ModelSetup("hermes", "small", "required", is_guided=True)
    if is_small:
        return ModelSetup("hermes", "small", None, is_guided=True)
    sees_images = _sees_images(settings, served)
    found = None if is_native else _own_prompt(settings, served, setup, console, sees_images)
    is_own = found is not None and found.own is not None
    known = setup.format if setup is not None and not setup.native else _recognised(settings, served, found, console)
    style = (
        "native" if is_native or is_own else settings.style or (setup.style if setup else prompt_style_for(constraint))
    )
    format = (None if settings.format == FROM_TEMPLATE else settings.format) or known or "hermes"
    return ModelSetup(format, style, constraint, is_native, is_own=is_own, sees_images=sees_images)


def _recognised(
    settings: RunSettings, served: LoadedModel, found: PromptDiscovery | None, console: Console
) -> str | None:
    """The format by the model's template, or by its name; a derived one is said."""
    wanted = settings.format == FROM_TEMPLATE
    if found is None and wanted:
        found = served.chat.own_prompt()
    told = found.recognised if found is not None else None
    if told is None:
        if wanted:
            console.note("format: not derived: the server tells no template; name one with --template")
        return guess_format(served.chat.model)
    told = told.from_template() if wanted else told
    if wanted or (settings.format is None and told.by == "template"):
        console.note(f"format: {told}")
    return told.format


def _is_small(settings: RunSettings, served: LoadedModel) -> bool:
    """Whether the model is too small to choose: the built-in one is, others where their server says so and no template
    or style describes the tools."""
    if settings.guide != "auto" or served.is_small:
        return settings.guide != "off"
    if (
        settings.style
        or settings.prompts
        or SmallModelCheck(served.chat.endpoint, "auto").assists_for(served.chat.model) is None
    ):
        return False
    return settings.prompt == "words" or served.chat.own_prompt().own is None


def _own_prompt(
    settings: RunSettings, served: LoadedModel, setup: CallingSetup | None, console: Console, sees_images: bool
) -> PromptDiscovery | None:
    """How the model gets the prompt that its own template makes, which is said; None where words are wanted.

    Raises UsageError where only that will do and it cannot be had.
    """
    wants_words = (
        settings.prompt == "words" or settings.style or settings.prompts or (setup and not setup.uses_template)
    )
    if settings.prompt == "auto" and (wants_words or sees_images):
        return None
    if wants_words:
        if settings.prompt == "own":
            raise UsageError("a style, prompts or a profile describe tools in words: leave them out with --prompt own")
        return None
    with console.busy(f"asking for the prompt of {served.chat.model}"):
        found = served.chat.own_prompt()
    console.note(f"prompt: {found.explanation}")
    if settings.prompt == "own" and found.own is None:
        raise UsageError(f"the model's own prompt cannot be had: {found.explanation}")
    return found


def _setup(settings: RunSettings, served: LoadedModel, console: Console) -> CallingSetup | None:
    """What the model's profile says; the built-in model has help of its own, so that only a named one counts."""
    if settings.profile == "none" or (served.is_small and settings.profile == "auto"):
        return None
    model = profiles.model_of(served.chat.endpoint, served.chat.model)
    profile, notes = profiles.active_profile(settings.profile, model)
    for note in notes:
        console.note(note)
    return profile.setup if profile else None


def _sees_images(settings: RunSettings, served: LoadedModel) -> bool:
    return bool(served.chat.sees_images()) if settings.images is None else settings.images
