"""The user's configuration: ``config.toml`` in ``$XDG_CONFIG_HOME/toolcall-adapter``, by default below ``~/.config``.

::

    [search]                      # what web search asks; without it local sources answer
    url = "http://localhost:8888/search?format=json&q={query}"
    key_variable = "SEARCH_KEY"   # the environment variable that holds the service's key, if it wants one

    [docs]                        # where library documentation comes from
    find_url = "https://context7.com/api/v1/search?query={name}"
    read_url = "https://context7.com/api/v1{id}?type=txt&topic={topic}&page={page}"

    [skills]
    folders = ["~/skills"]        # besides those in the workspace

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
from typing import TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from rapidfuzz import fuzz, process

from adapter.errors import UsageError

FILE_NAME = "config.toml"
Settings = TypeVar("Settings", bound=BaseModel)


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SearchTable(_Table):
    url: str
    key_variable: str | None = None


class DocsTable(_Table):
    find_url: str
    read_url: str
    key_variable: str | None = None


class SkillsTable(_Table):
    folders: list[str] = Field(default=[])


class ModelTable(_Table):
    model: str | None = None
    base_url: str | None = None
    format: str | None = None


class Config(_Table):
    """What the file says; a table that it has not is None or empty."""

    search: SearchTable | None = None
    docs: DocsTable | None = None
    skills: SkillsTable = SkillsTable()
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
        raise UsageError(f"{path} is no TOML: {error}") from error
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
    return f"{key!r}: {message[:1].lower()}{message[1:]}"


def _table_at(settings: type[BaseModel], place: list[str]) -> type[BaseModel]:
    """The table that holds a key; below a name of the user's, such as that of a model, the table of such names."""
    for part in place:
        field = settings.model_fields.get(part)
        if field is None:
            continue
        inner = [field.annotation, *get_args(field.annotation)]
        settings = next(kind for kind in inner if isinstance(kind, type) and issubclass(kind, BaseModel))
    return settings
