"""The user's configuration: ``config.toml`` in ``$XDG_CONFIG_HOME/toolcall-adapter``, by default below ``~/.config``.

::

    [search]                      # what web search asks; without it no model is offered any
    service = "exa"               # or "brave", whose keys EXA_API_KEY and BRAVE_API_KEY hold
                                  # or "searxng", with the address of yours: url = "http://localhost:8888"

    [search]                      # any other service
    url = "https://search.example/find?n={limit}&q={query}"
    key_variable = "SEARCH_KEY"   # the environment variable that holds its key, if it wants one
    key_header = "X-Key"          # where the key goes; Authorization, after Bearer, when left out
    body = { q = "{query}" }      # what is posted, as JSON; without it the address is fetched
    results = "web.results"       # where in the answer the list is; results or data when left out
    most = 20                     # results that it gives at once

    [docs]                        # where library documentation comes from
    find_url = "https://context7.com/api/v1/search?query={name}"
    read_url = "https://context7.com/api/v1{id}?type=txt&topic={topic}&page={page}"

    [skills]
    folders = ["~/skills"]        # besides those in the workspace

    [guardrails]                  # see docs/reliability.md
    use = "on,-refusal"           # on, off, all, or names
    retries = 3

    [steps]                       # of every task of `adapter run`; a file for one task goes to --config
    required = ["run_command"]    # before the model may end
    before = { apply_edit = ["read_file(path)"] }
    ends_with = ["submit"]

    [models.strong]               # the model of sub-agents of a tier, or of any name
    base_url = "http://box:8080"  # the session's server when left out
    model = "qwen3-coder:30b"
    format = "qwen3_coder"        # by the model's name when left out

Every table and key may be left out. Nothing of this is ever read from a workspace: it says whom requests
go to. `read_toml` reads other files of the user in the same manner.
"""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path
from typing import Annotated, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from rapidfuzz import fuzz, process

from adapter.agent.agent import AGENT_RETRIES
from adapter.core.arguments import reason
from adapter.core.errors import UsageError
from adapter.core.events import JsonObject
from adapter.core.validation import plain_message
from adapter.workspace.capabilities.http_providers import HttpSearch
from adapter.workspace.capabilities.search_services import SERVICES, search_service

FILE_NAME = "config.toml"
Settings = TypeVar("Settings", bound=BaseModel)


class _ConfigTable(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SearchTable(_ConfigTable):
    """A service by its name, or any by its address."""

    service: str | None = None
    url: str | None = None
    key_variable: str | None = None
    key_header: str = "Authorization"
    body: JsonObject | None = None
    results: str = ""
    most: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> SearchTable:
        if self.service is None and self.url is None:
            raise ValueError(f"give a service ({', '.join(SERVICES)}) or a url")
        own = [name for name in ("key_header", "body", "results", "most") if name in self.model_fields_set]
        if self.service is not None and own:
            raise ValueError(f"{' and '.join(own)} of {self.service!r}: these are known; give them with a url alone")
        return self

    def provider(self) -> HttpSearch:
        """Raises UsageError for a service that is not known and an address that cannot be used."""
        if self.service is not None:
            return search_service(self.service, self.url, self.key_variable)
        return HttpSearch(
            self.url or "",
            key_variable=self.key_variable,
            key_header=self.key_header,
            body=self.body,
            results=self.results,
            most=self.most,
        )


class DocsTable(_ConfigTable):
    find_url: str
    read_url: str
    key_variable: str | None = None


class SkillsTable(_ConfigTable):
    folders: list[str] = Field(default=[])


class ModelTable(_ConfigTable):
    model: str | None = None
    base_url: str | None = None
    format: str | None = None


class GuardrailsTable(_ConfigTable):
    use: str = "on"
    retries: Annotated[int, Field(ge=0)] = AGENT_RETRIES


class StepsTable(_ConfigTable):
    """As `adapter.conversation.guardrails.required_steps.Steps`."""

    required: list[str] = Field(default=[])
    before: dict[str, list[str]] = Field(default={})
    ends_with: list[str] = Field(default=[])


class Config(_ConfigTable):
    """What the file says; a table that it has not is None or empty."""

    search: SearchTable | None = None
    docs: DocsTable | None = None
    skills: SkillsTable = SkillsTable()
    guardrails: GuardrailsTable = GuardrailsTable()
    steps: StepsTable = StepsTable()
    models: dict[str, ModelTable] = Field(default={})


def config_directory() -> Path:
    """Where the user's own settings are, by the platform's custom."""
    if base := os.environ.get("XDG_CONFIG_HOME"):
        return Path(base) / "toolcall-adapter"
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming") / "toolcall-adapter"
    return Path.home() / ".config" / "toolcall-adapter"


def read_config(workspace: Path, file: Path | None = None) -> Config:
    """The configuration in ``file``, by default the user's; nothing where the user has none.

    Raises UsageError for a file that cannot be used, and for one inside ``workspace``, where a model could write it.
    """
    path = file or config_directory() / FILE_NAME
    if file is None and not path.exists():
        return Config()
    if path.resolve().is_relative_to(workspace.resolve()):
        raise UsageError(
            f"the configuration {path} lies inside the workspace {workspace}, where a model could write it; "
            "move it, or name another with --config (an empty file will do)"
        )
    return read_toml(path, Config)


def read_toml(path: Path, settings: type[Settings]) -> Settings:
    """The TOML file as ``settings``. Raises UsageError: the file, each wrong key and the nearest valid one."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {reason(error)}") from error
    try:
        return settings.model_validate(given)
    except ValidationError as error:
        problems = "; ".join(
            _problem(settings, [str(part) for part in detail["loc"]], detail["type"], detail["msg"])
            for detail in error.errors(include_url=False)
        )
        raise UsageError(f"{path}: {problems}") from error


def _problem(settings: type[BaseModel], place: list[str], kind: str, message: str) -> str:
    key = ".".join(place)
    if kind == "extra_forbidden":
        known = list(_table_at(settings, place[:-1]).model_fields)
        near = process.extractOne(place[-1], known, scorer=fuzz.ratio, score_cutoff=50)
        return f"unknown key {key!r}; " + (f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known)}")
    if kind == "missing":
        return f"{key!r} is missing"
    return f"{key!r}: {plain_message(message)}"


def _table_at(settings: type[BaseModel], place: list[str]) -> type[BaseModel]:
    """The table that holds a key; below a name of the user's, such as that of a model, the table of such names."""
    for part in place:
        field = settings.model_fields.get(part)
        if field is None:
            continue
        inner = [field.annotation, *get_args(field.annotation)]
        settings = next(kind for kind in inner if isinstance(kind, type) and issubclass(kind, BaseModel))
    return settings
