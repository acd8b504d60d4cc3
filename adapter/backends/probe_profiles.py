"""Store profiles, the best calling setups that `adapter probe` found for models, as TOML files.

Each model has a file in ``$XDG_CONFIG_HOME/toolcall-adapter/profiles/`` (default: ``~/.config``). Users may edit the
file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adapter.backends.endpoint_discovery import Endpoint, list_model_ids
from adapter.backends.model_queries import Model, query_model
from adapter.backends.user_directories import find_config_directory
from adapter.core.argument_checks import check_types
from adapter.core.bounded_parsing import parse_toml
from adapter.core.errors import UsageError
from adapter.core.events import Json
from adapter.core.validation_errors import explain_validation_error
from adapter.core.version import __version__
from adapter.grammars.constraint_mode import Constraint
from adapter.parsing.formats import get_format, is_format_file
from adapter.prompting.calling_setup import CallingSetup
from adapter.prompting.system_prompt import Style


class _ProfileTable(BaseModel):
    """A table of a profile file. Unknown keys, for example from later versions, are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class ProfileScore(_ProfileTable):
    """The score of a setup in ``tasks`` test tasks. ``valid`` counts answers whose calls are all valid, ``right``
    correct answers, and ``needless`` unnecessary calls. Tokens and seconds are totals."""

    tasks: int = 0
    valid: int = 0
    right: int = 0
    needless: int = 0
    prompt_tokens: int = 0
    written_tokens: int = 0
    seconds: float = 0.0


class ProfileSetup(_ProfileTable):
    """The `CallingSetup` stored in a profile. Users add ``reasoning_budget`` themselves."""

    format: str = "hermes"
    style: Style = "trained"
    constraint: Constraint = "off"
    native: bool = False
    own: bool = False
    reasoning_budget: int | None = Field(default=None, ge=0)


class Profile(_ProfileTable):
    """The best setup that `adapter probe` found for a model."""

    version: str = __version__
    made: str = ""
    is_whole: bool = True
    """True if all tasks were tried."""
    model: Model
    use: ProfileSetup
    before: ProfileScore = ProfileScore()
    """Score of the server's own tool calling."""
    after: ProfileScore = ProfileScore()
    """Score of the setup in ``use``."""

    @property
    def setup(self) -> CallingSetup:
        format = get_format(self.use.format).name if is_format_file(self.use.format) else self.use.format
        use = self.use
        return CallingSetup(format, use.style, use.constraint, use.native, use.own, use.reasoning_budget)

    def describe(self) -> str:
        """Describe the profile in one line."""
        score = f"{self.after.right} of {self.after.tasks} correct; the server alone: {self.before.right}"
        return f"profile of {self.model.name}: {self.setup.name} ({score})"

    def list_staleness_reasons(self, model: Model) -> tuple[str, ...]:
        """Return the reasons, as short clauses, why the profile may not apply to the server's current ``model``."""
        reasons = []
        if self.model.file and model.file and self.model.file != model.file:
            reasons.append(f"it was made for the file {self.model.file}, but the server has loaded {model.file}")
        if self.model.digest and model.digest and self.model.digest != model.digest:
            reasons.append("the model has changed since")
        if self.model.template and model.template and self.model.template != model.template:
            reasons.append("the chat template has changed since")
        if self.version != __version__:
            reasons.append(f"it was made by version {self.version}, but this is {__version__}")
        return tuple(reasons)


def find_profile_directory() -> Path:
    return find_config_directory() / "profiles"


def build_profile_path(model: str) -> Path:
    name = re.sub(r"[^\w.-]+", "_", model).strip("._") or "model"
    return find_profile_directory() / f"{name}.toml"


def save_profile(profile: Profile, path: Path) -> None:
    """Write ``profile`` to ``path``, replacing a file atomically. Raises UsageError if the file cannot be written."""
    lines = [
        "# Made by `adapter probe`. Use --profile none to ignore it.",
        *_format_tables(profile.model_dump(exclude_none=True)),
    ]
    new = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new.write_text("\n".join(lines) + "\n", encoding="utf-8")
        new.replace(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}. Choose another path.") from error


def _format_tables(values: Mapping[str, Json]) -> Iterator[str]:
    """Yield lines of TOML: plain values, then tables. JSON values are valid TOML once the character DEL is escaped."""
    for key, value in values.items():
        if not isinstance(value, dict):
            text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
            yield f"{key} = {text}"
    for key, value in values.items():
        if isinstance(value, dict):
            yield from ("", f"[{key}]", *_format_tables(value))


def load_profile(path: Path) -> Profile:
    """Read a profile. Raises UsageError if the file is invalid."""
    try:
        return Profile.model_validate(parse_toml(path.read_text(encoding="utf-8-sig")))
    except OSError as error:
        raise UsageError(
            f"cannot read the profile {path}: {error.strerror}. Create one with `adapter probe`."
        ) from error
    except ValidationError as error:
        raise UsageError(
            f"{path} is not a profile ({explain_validation_error(error)}); create one with `adapter probe`"
        ) from error
    except ValueError as error:
        raise UsageError(
            f"{path} is not valid TOML: {error}. Correct it, or create another with `adapter probe`."
        ) from error


def find_profile(name: str) -> Profile:
    """Read the profile at the path ``name``, or else the profile of the model ``name``. Raises UsageError, which lists
    the existing profiles, if neither exists."""
    check_types("profile", name=(name, str))
    for path in (Path(name), build_profile_path(name)):
        with suppress(OSError):  # the name is too long for a file
            if path.is_file():
                return load_profile(path)
    present = ", ".join(sorted(path.stem for path in find_profile_directory().glob("*.toml"))) or "none"
    raise UsageError(f"unknown profile {name!r}; existing profiles: {present}. Create one with `adapter probe`.")


def validate_profile_name(choice: str) -> None:
    """Raise UsageError unless ``choice`` is ``auto``, ``none``, or the name or path of a profile."""
    if choice not in ("auto", "none"):
        find_profile(choice)


def find_active_profile(choice: str, model: Model) -> tuple[Profile | None, list[str]]:
    """Return the profile for ``model`` (or None), and notes for the user.

    ``auto`` selects the profile made for this model, unless a different model now has the same name. ``none`` selects
    no profile. A name or path selects a profile even if it is stale. Raises UsageError for an unknown name.
    """
    if choice == "none":
        return None, []
    if choice != "auto":
        profile = find_profile(choice)
        return profile, [profile.describe(), *_list_staleness_notes(profile, model)]
    try:
        profile = load_profile(build_profile_path(model.name))
    except UsageError as error:
        return None, [f"{error}; the profile is not used"] if build_profile_path(model.name).is_file() else []
    if (profile.model.name, profile.model.server) != (model.name, model.server):
        return None, []
    reasons = profile.list_staleness_reasons(model)
    if any("version" not in reason for reason in reasons):
        return None, [f"the profile of {model.name} is not used: {'; '.join(reasons)}. Renew it: adapter probe"]
    return profile, [profile.describe(), *_list_staleness_notes(profile, model)]


def _list_staleness_notes(profile: Profile, model: Model) -> list[str]:
    reasons = profile.list_staleness_reasons(model)
    return [f"the profile may be outdated: {'; '.join(reasons)}. Renew it: adapter probe"] if reasons else []


def build_setup_lookup(
    choice: str, endpoint: Endpoint
) -> tuple[Callable[[str], CallingSetup | None] | None, list[str]]:
    """Return two values: a function that looks up a model's setup in its profile by the model's name, and notes for the
    user.

    ``choice`` is ``auto``, ``none``, or a profile's name or path. With ``none``, the function is None. A profile that
    the user selected applies to all requests. So does the profile of llama.cpp's only model, because requests can use
    any model name.
    """
    if choice == "none":
        return None, []
    names = list_model_ids(endpoint)
    if choice != "auto":
        profile, notes = find_active_profile(choice, query_model(endpoint, names[0] if names else ""))
        return (lambda _: profile.setup if profile else None), notes
    setups: dict[str, CallingSetup] = {}
    all_notes: list[str] = []
    for name in names:
        if build_profile_path(name).is_file():
            profile, notes = find_active_profile(choice, query_model(endpoint, name))
            all_notes += notes
            if profile is not None:
                setups[name] = profile.setup
    if endpoint.kind == "llama.cpp":
        only = next(iter(setups.values()), None)
        return (lambda _: only), all_notes
    return setups.get, all_notes
