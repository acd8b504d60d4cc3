"""Determine a model's tool-calling setup from the options and from the model's profile, chat template and name."""

from __future__ import annotations

from dataclasses import dataclass

from adapter.agent.prompt_setup import choose_prompt_style
from adapter.backends import model_queries, probe_profiles
from adapter.backends.prompt_discovery import PromptDiscovery
from adapter.backends.small_model_detection import SmallModelCheck
from adapter.cli.agent_console import Console
from adapter.cli.model_loading import LoadedModel
from adapter.cli.options import parse_auto
from adapter.cli.run_settings import RunSettings
from adapter.core.errors import UsageError
from adapter.grammars.constraint_mode import Constraint, parse_constraint_mode
from adapter.parsing.formats import FROM_TEMPLATE, guess_format
from adapter.prompting.calling_setup import CallingSetup


@dataclass(frozen=True, slots=True)
class ModelSetup:
    """The prompt, the call format and the constraint that a command uses for its model."""

    format: str
    style: str
    constraint: Constraint | None
    is_native: bool = False
    """True if the server's own tool calling is used."""
    is_guided: bool = False
    """True if the wording of each request selects the tool, because the model is too small to choose one."""
    is_own: bool = False
    """True if the model's chat template describes the tools."""
    sees_images: bool = False


def resolve_model_setup(task: str | None, settings: RunSettings, loaded: LoadedModel, console: Console) -> ModelSetup:
    """Return the setup for the model. Options take precedence over the model's profile, and the profile over the
    model's chat template and name. ``task`` is None in a chat."""
    constraint = parse_constraint_mode(parse_auto(settings.constraint))
    profile = _find_profile(settings, loaded, console)
    if profile is not None and profile.constraint != "off":
        constraint = constraint or profile.constraint
    is_native = profile is not None and profile.native and settings.format == "auto" and constraint is None
    is_small = constraint is None and not is_native and _is_small(settings, loaded)
    if is_small and not loaded.is_small:
        console.note(SmallModelCheck(loaded.chat.endpoint, settings.guide).explain(loaded.chat.model))
    if is_small or (task is not None and constraint == "required" and settings.guide != "off"):
        return ModelSetup("hermes", "small", None if task is None else "required", is_guided=True)
    sees_images = bool(loaded.chat.sees_images()) if settings.images is None else settings.images
    prompt = None if is_native else _discover_prompt(settings, loaded, profile, console, sees_images)
    is_own = prompt is not None and prompt.template_prompt is not None
    if profile is not None and not profile.native:
        known: str | None = profile.format
    else:
        known = _detect_format(settings, loaded, prompt, console)
    style = parse_auto(settings.style) or (profile.style if profile else choose_prompt_style(constraint))
    format = settings.format if settings.format not in ("auto", FROM_TEMPLATE) else known or "hermes"
    style = "native" if is_native or is_own else style
    return ModelSetup(format, style, constraint, is_native, is_own=is_own, sees_images=sees_images)


def _detect_format(
    settings: RunSettings, loaded: LoadedModel, prompt: PromptDiscovery | None, console: Console
) -> str | None:
    """Detect the format from the model's chat template. If it has none, guess the format from the model's name. Print a
    note if the template determines the format."""
    is_inferred = settings.format == FROM_TEMPLATE
    if prompt is None and is_inferred:
        prompt = loaded.chat.discover_own_prompt()
    detected = prompt.recognized if prompt is not None else None
    if detected is None:
        if is_inferred:
            console.note("format: not inferred, because the server reports no chat template; pass one with --template")
        return guess_format(loaded.chat.model)
    detected = detected.from_template() if is_inferred else detected
    if is_inferred or (settings.format == "auto" and detected.by == "template"):
        console.note(f"format: {detected}")
    return detected.format


def _is_small(settings: RunSettings, loaded: LoadedModel) -> bool:
    """Return whether the wording of each request selects the tool, because the model is too small to choose one.

    This applies to the built-in model. It also applies to a model that is small according to its server, unless a chat
    template, a style or custom prompts describe the tools.
    """
    if settings.guide != "auto" or loaded.is_small:
        return settings.guide != "off"
    if settings.style != "auto" or settings.prompts:
        return False
    if SmallModelCheck(loaded.chat.endpoint, "auto").find_guided_choice(loaded.chat.model) is None:
        return False
    return settings.prompt == "words" or loaded.chat.discover_own_prompt().template_prompt is None


def _discover_prompt(
    settings: RunSettings, loaded: LoadedModel, profile: CallingSetup | None, console: Console, sees_images: bool
) -> PromptDiscovery | None:
    """Detect whether the model's chat template can describe the tools. Return None if a generated prompt is used.

    Raises UsageError if the options require the template and it cannot be used.
    """
    needs_text = bool(
        settings.prompt == "words"
        or settings.style != "auto"
        or settings.prompts
        or (profile and not profile.uses_template)
    )
    if needs_text and settings.prompt == "own":
        raise UsageError(
            "--prompt own cannot be combined with --style, --prompts, or a profile that uses a generated prompt"
        )
    if needs_text or (settings.prompt == "auto" and sees_images):
        return None
    with console.show_busy(f"checking the prompt of {loaded.chat.model}"):
        prompt = loaded.chat.discover_own_prompt()
    console.note(f"prompt: {prompt.explanation}")
    if settings.prompt == "own" and prompt.template_prompt is None:
        raise UsageError(f"--prompt own: the model's chat template cannot be used: {prompt.reason}; use --prompt words")
    return prompt


def _find_profile(settings: RunSettings, loaded: LoadedModel, console: Console) -> CallingSetup | None:
    """Return the setup in the model's profile, or None if there is no profile. The built-in model has a fixed setup,
    which only a profile named by the user replaces."""
    if settings.profile == "none" or (loaded.is_small and settings.profile == "auto"):
        return None
    model = model_queries.query_model(loaded.chat.endpoint, loaded.chat.model)
    profile, notes = probe_profiles.find_active_profile(settings.profile, model)
    for note in notes:
        console.note(note)
    return profile.setup if profile else None
