"""Profiles: what `adapter probe` found to be best for one model on one server, as a TOML file.

They stand in ``$XDG_CONFIG_HOME/toolcall-adapter/profiles/`` (``~/.config`` where that is not set),
one file a model, and may be edited by hand.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePath

from pydantic import BaseModel, ConfigDict, ValidationError

from adapter.backends.endpoint_discovery import Endpoint, get_json
from adapter.core.arguments import check_types
from adapter.core.errors import UsageError
from adapter.core.events import Json
from adapter.core.validation import explain
from adapter.core.version import __version__
from adapter.grammars.constraint_mode import Constraint
from adapter.prompting.calling_setup import CallingSetup
from adapter.prompting.system_prompt import Style


class _ProfileTable(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Model(_ProfileTable):
    """The model as its server knows it. ``file`` and ``digest`` tell one from another of the same name,
    ``template`` is a hash of its chat template; empty where the server does not say."""

    name: str
    server: str = "openai"
    base_url: str = ""
    file: str = ""
    digest: str = ""
    template: str = ""


class ProfileScore(_ProfileTable):
    """Of ``tasks``: how many answers held only valid calls, how many were right, and how many held calls where none
    was wanted. Tokens are of all tasks."""

    tasks: int = 0
    valid: int = 0
    right: int = 0
    needless: int = 0
    prompt_tokens: int = 0
    written_tokens: int = 0
    seconds: float = 0.0


class ProfileSetup(_ProfileTable):
    """The setup to use; see `CallingSetup`."""

    format: str = "hermes"
    style: Style = "trained"
    constraint: Constraint = "off"
    native: bool = False
    own: bool = False


class Profile(_ProfileTable):
    """``before``: the server's own tool calling, ``after``: that in ``use``. ``is_whole``: all tasks were tried."""

    version: str = __version__
    made: str = ""
    is_whole: bool = True
    model: Model
    use: ProfileSetup
    before: ProfileScore = ProfileScore()
    after: ProfileScore = ProfileScore()

    @property
    def setup(self) -> CallingSetup:
        return CallingSetup(self.use.format, self.use.style, self.use.constraint, self.use.native, self.use.own)

    def told(self) -> str:
        """One line for the user: which profile is in force."""
        found = f"{self.after.right} of {self.after.tasks} right, the server alone {self.before.right}"
        return f"profile of {self.model.name}: {self.setup.name} ({found})"

    def staleness(self, model: Model) -> tuple[str, ...]:
        """Why it may not hold for ``model``, the one that is served now; nothing where it does."""
        reasons = []
        if self.model.file and model.file and self.model.file != model.file:
            reasons.append(f"it was made for the file {self.model.file}, and {model.file} is served")
        if self.model.digest and model.digest and self.model.digest != model.digest:
            reasons.append("the model has been changed since")
        if self.model.template and model.template and self.model.template != model.template:
            reasons.append("the chat template has been changed since")
        if self.version != __version__:
            reasons.append(f"it was made by version {self.version}, and this is {__version__}")
        return tuple(reasons)


def folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where profiles are."""
    config = environ.get("XDG_CONFIG_HOME") or str(Path(environ.get("HOME", "~")).expanduser() / ".config")
    return Path(config) / "toolcall-adapter" / "profiles"


def path_of(model: str) -> Path:
    """The file for a model's profile."""
    name = re.sub(r"[^\w.-]+", "_", model).strip("._") or "model"
    return folder() / f"{name}.toml"


def save(profile: Profile, path: Path) -> None:
    """Write ``profile``; raises UsageError where that cannot be done. An old file is replaced as a whole."""
    lines = ["# Made by `adapter probe`; --profile none leaves it out.", *_tables(profile.model_dump())]
    written = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        written.write_text("\n".join(lines) + "\n", encoding="utf-8")
        written.replace(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}. Choose another place.") from error


def _tables(values: Mapping[str, Json]) -> Iterator[str]:
    """TOML: values first, then the tables. JSON's strings (but for DEL), numbers and truth values are TOML's."""
    for key, value in values.items():
        if not isinstance(value, dict):
            text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
            yield f"{key} = {text}"
    for key, value in values.items():
        if isinstance(value, dict):
            yield from ("", f"[{key}]", *_tables(value))


def load(path: Path) -> Profile:
    """Read a profile. Raises UsageError that says what is wrong with it."""
    try:
        return Profile.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UsageError(f"cannot read the profile {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from error
    except ValidationError as error:
        raise UsageError(f"{path} is not a profile ({explain(error)}); make one with `adapter probe`") from error


def profile_path(name: str) -> Profile:
    """The profile called ``name``: a file, or a model's. Raises UsageError naming those there are."""
    check_types("profile", name=(name, str))
    for path in (Path(name), path_of(name)):
        with suppress(OSError):  # a name that is too long for a file
            if path.is_file():
                return load(path)
    there = ", ".join(sorted(path.stem for path in folder().glob("*.toml"))) or "none"
    raise UsageError(f"no profile {name!r}; there are: {there}. `adapter probe` makes one.")


def model_of(endpoint: Endpoint, name: str, timeout_s: float = 2.0) -> Model:
    """What the server says of the model ``name``. llama.cpp has one, whatever it is called."""
    without_password = re.sub(r"//[^/@]*@", "//", endpoint.base_url)
    model = Model(name=name, server=endpoint.kind, base_url=without_password)
    if endpoint.kind == "llama.cpp":
        props = _asked(f"{endpoint.root}/props", timeout_s)
        file, template = str(props.get("model_path") or ""), props.get("chat_template")
        return model.model_copy(update={"file": PurePath(file).name, "template": _hash(template)})
    if endpoint.kind == "ollama":
        shown = _asked(f"{endpoint.root}/api/show", timeout_s, {"model": name})
        listed = _asked(f"{endpoint.root}/api/tags", timeout_s).get("models")
        entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
        digest = next((entry.get("digest") for entry in entries if entry.get("name") in (name, f"{name}:latest")), "")
        return model.model_copy(update={"digest": str(digest or "")[:16], "template": _hash(shown.get("template"))})
    return model


def template_of(endpoint: Endpoint, timeout_s: float = 2.0) -> str | None:
    """The model's chat template, where its server shows one in Jinja."""
    template = (
        _asked(f"{endpoint.root}/props", timeout_s).get("chat_template") if endpoint.kind == "llama.cpp" else None
    )
    return template if isinstance(template, str) else None


def takes_tools(endpoint: Endpoint, timeout_s: float = 2.0) -> bool | None:
    """Whether the model's template has a place for tools; None where the server does not say.

    llama.cpp answers 200 and leaves ``tools`` out where it has none.
    """
    caps = (
        _asked(f"{endpoint.root}/props", timeout_s).get("chat_template_caps") if endpoint.kind == "llama.cpp" else None
    )
    told = caps.get("supports_tools") if isinstance(caps, dict) else None
    return told if isinstance(told, bool) else None


def _asked(url: str, timeout_s: float, body: Json = None) -> dict[str, Json]:
    answer = get_json(url, timeout_s, body)
    return answer.body if answer is not None and answer.status == 200 and isinstance(answer.body, dict) else {}


def _hash(template: Json) -> str:
    return hashlib.sha256(template.encode("utf-8", "replace")).hexdigest()[:16] if isinstance(template, str) else ""


def validate_profile_name(choice: str) -> None:
    """Raise UsageError for a choice that means no profile, before anything is begun."""
    if choice not in ("auto", "none"):
        profile_path(choice)


def active_profile(choice: str, model: Model) -> tuple[Profile | None, list[str]]:
    """The profile that ``choice`` means for ``model``, and what to tell the user of it.

    ``auto``: the one made for this model, unless another model now goes by its name; ``none``: none;
    else a name or a file, which is used whatever was changed since.
    Raises UsageError for a name that means none.
    """
    if choice == "none":
        return None, []
    if choice != "auto":
        profile = profile_path(choice)
        return profile, [profile.told(), *_stale(profile, model)]
    try:
        profile = load(path_of(model.name))
    except UsageError as error:
        return None, [f"{error}; it is not used"] if path_of(model.name).is_file() else []
    if (profile.model.name, profile.model.server) != (model.name, model.server):
        return None, []
    reasons = profile.staleness(model)
    if any("version" not in reason for reason in reasons):
        return None, [f"the profile of {model.name} is not used: {'; '.join(reasons)}. Make it anew: adapter probe"]
    return profile, [profile.told(), *_stale(profile, model)]


def _stale(profile: Profile, model: Model) -> list[str]:
    reasons = profile.staleness(model)
    return [f"it may not hold any more: {'; '.join(reasons)}. Make it anew: adapter probe"] if reasons else []


def setup_lookup(choice: str, endpoint: Endpoint) -> tuple[Callable[[str], CallingSetup | None] | None, list[str]]:
    """The setup by the model's name in a request, for all models that ``endpoint`` serves, and what to tell the user.

    llama.cpp has one model, whatever requests call it; a profile that the user names is for all requests.
    """
    if choice == "none":
        return None, []
    names = _served(endpoint)
    if choice != "auto":
        profile, notes = active_profile(choice, model_of(endpoint, names[0] if names else ""))
        return (lambda _: profile.setup if profile else None), notes
    found: dict[str, CallingSetup] = {}
    told: list[str] = []
    for name in names:
        if path_of(name).is_file():
            profile, notes = active_profile(choice, model_of(endpoint, name))
            told += notes
            if profile is not None:
                found[name] = profile.setup
    if endpoint.kind == "llama.cpp":
        only = next(iter(found.values()), None)
        return (lambda _: only), told
    return found.get, told


def _served(endpoint: Endpoint, timeout_s: float = 2.0) -> list[str]:
    listed = _asked(f"{endpoint.base_url}/models", timeout_s).get("data")
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    return [str(entry["id"]) for entry in entries if entry.get("id")]
