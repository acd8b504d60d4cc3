"""Read the user's configuration, ``$XDG_CONFIG_HOME/toolcall-adapter/config.toml``.

``$XDG_CONFIG_HOME`` is ``~/.config`` by default. An example of the file:

::

    [search]                      # web search service; without it, models get no web search
    service = "exa"               # or "brave"; their keys come from EXA_API_KEY and BRAVE_API_KEY
                                  # or "searxng" with its address: url = "http://localhost:8888"

    [search]                      # any other service
    url = "https://search.example/find?n={limit}&q={query}"
    key_variable = "SEARCH_KEY"   # environment variable with its key, if it needs one
    key_header = "X-Key"          # header for the key; by default, "Authorization: Bearer"
    body = { q = "{query}" }      # JSON body to POST; without it, the URL is fetched with GET
    results = "web.results"       # path of the list of results in the response; by default, results or data
    most = 20                     # maximum number of results per request

    [docs]                        # source of library documentation
    find_url = "https://context7.com/api/v1/search?query={name}"
    read_url = "https://context7.com/api/v1{id}?type=txt&topic={topic}&page={page}"

    [skills]
    folders = ["~/skills"]        # in addition to the workspace's

    [guardrails]                  # see docs/reliability.md
    use = "on,-refusal"           # on, off, all, or names
    retries = 3

    [steps]                       # steps required in every task of `adapter run`; for one task, use --config
    required = ["run_command"]    # tools to call before the model may end
    before = { apply_edit = ["read_file(path)"] }
    ends_with = ["submit"]

    [models.strong]               # model for sub-agents of the tier "strong"; any other name is also possible
    base_url = "http://box:8080"  # by default, the server of the main model
    model = "qwen3-coder:30b"
    format = "qwen3_coder"        # by default, guessed from the model's name

Every table and key is optional. The configuration is never read from a workspace, because it decides where requests are
sent. `read_toml` also reads the user's other TOML files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from rapidfuzz import fuzz, process

from adapter.agent.base_agent import AGENT_RETRIES
from adapter.backends.user_directories import find_config_directory
from adapter.core.argument_checks import explain_read_error
from adapter.core.bounded_parsing import parse_toml
from adapter.core.errors import UsageError
from adapter.core.events import JsonObject
from adapter.core.validation_errors import simplify_message
from adapter.workspace.capabilities.http_search_and_docs import HttpSearch
from adapter.workspace.capabilities.predefined_search_services import SERVICES, get_search_service

FILE_NAME = "config.toml"
MAX_PROBLEMS = 5
"""Maximum number of invalid keys that an error message names."""
MAX_KEY = 80
"""Maximum length of a key in a message, in characters."""
Settings = TypeVar("Settings", bound=BaseModel)


class _ConfigTable(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SearchTable(_ConfigTable):
    """The table ``[search]``: a web search service, either a predefined one by name or any other by URL."""

    service: str | None = None
    url: str | None = None
    key_variable: str | None = None
    key_header: str = "Authorization"
    body: JsonObject | None = None
    results: str = ""
    most: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _check_one_kind(self) -> SearchTable:
        if self.service is None and self.url is None:
            raise ValueError(f"the search service is missing; set service ({', '.join(SERVICES)}) or url")
        custom = [name for name in ("key_header", "body", "results", "most") if name in self.model_fields_set]
        if self.service is not None and custom:
            raise ValueError(
                f"{' and '.join(custom)} cannot be combined with service {self.service!r}; set url instead"
            )
        return self

    def build_provider(self) -> HttpSearch:
        """Build the search client. Raises UsageError for an unknown service or an invalid URL."""
        if self.service is not None:
            return get_search_service(self.service, self.url, self.key_variable)
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
    """The table ``[steps]``: the steps required in every task of `adapter run`.

    `adapter.conversation.guardrails.required_steps.Steps` explains the fields.
    """

    required: list[str] = Field(default=[])
    before: dict[str, list[str]] = Field(default={})
    ends_with: list[str] = Field(default=[])


class Config(_ConfigTable):
    """The whole configuration file. A missing table is None or empty."""

    search: SearchTable | None = None
    docs: DocsTable | None = None
    skills: SkillsTable = SkillsTable()
    guardrails: GuardrailsTable = GuardrailsTable()
    steps: StepsTable = StepsTable()
    models: dict[str, ModelTable] = Field(default={})


def read_config(workspace: Path, file: Path | None = None) -> Config:
    """Read ``file``, or the user's configuration file if ``file`` is None. The user's file may be missing.

    Raises UsageError if the file is invalid, or inside ``workspace``, where a model could change it.
    """
    path = file or find_config_directory() / FILE_NAME
    if file is None and not path.exists():
        return Config()
    if path.resolve().is_relative_to(workspace.resolve()):
        raise UsageError(
            f"the configuration file {path} is inside the workspace {workspace}, where a model could change it; "
            "move it, or name another file with --config (an empty file is valid)"
        )
    return read_toml(path, Config)


def read_toml(path: Path, settings: type[Settings]) -> Settings:
    """Read a TOML file, and validate it with the class ``settings``.

    Raises UsageError if the file cannot be read or is invalid. The message names similar valid keys.
    """
    try:
        values = parse_toml(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path} is not valid TOML: {explain_read_error(error)}") from error
    try:
        return settings.model_validate(values)
    except ValidationError as error:
        details = error.errors(include_url=False)
        problems = [
            _describe_problem(settings, [str(part) for part in detail["loc"]], detail["type"], detail["msg"])
            for detail in details[:MAX_PROBLEMS]
        ]
        if len(details) > MAX_PROBLEMS:
            problems.append(f"and {len(details) - MAX_PROBLEMS} more problems")
        raise UsageError(f"{path}: {'; '.join(problems)}") from error


def _describe_problem(settings: type[BaseModel], path: list[str], kind: str, message: str) -> str:
    key = ".".join(path)
    key = key if len(key) <= MAX_KEY else f"{key[: MAX_KEY - 3]}..."
    if kind == "extra_forbidden":
        known = list(_find_table(settings, path[:-1]).model_fields)
        near = process.extractOne(path[-1], known, scorer=fuzz.ratio, score_cutoff=50)
        return f"unknown key {key!r}; " + (
            f"did you mean {near[0]!r}?" if near else f"expected one of: {', '.join(known)}"
        )
    if kind == "missing":
        return f"{key!r} is missing"
    return f"{key!r}: {simplify_message(message)}"


def _find_table(settings: type[BaseModel], path: list[str]) -> type[BaseModel]:
    """Return the class that validates the table at ``path``, a list of keys.

    Keys that the user chooses, such as model names, are skipped.
    """
    for part in path:
        field = settings.model_fields.get(part)
        if field is None:
            continue
        inner = [field.annotation, *get_args(field.annotation)]
        settings = next(kind for kind in inner if isinstance(kind, type) and issubclass(kind, BaseModel))
    return settings
