"""The configuration file of `adapter serve`: one key for each option, and tables for models.

::

    upstream = "http://127.0.0.1:8080"
    host = "0.0.0.0"
    max-streams = 4
    trusted-host = ["llm.example"]

    [models."qwen3-coder:30b"]     # settings for requests that name this model
    format = "qwen3_coder"
    constraint = "arguments"       # by default, off
    style = "compact"              # style of a generated prompt; without this key, the chat template is used
    native = false                 # true: the model server describes the tools and parses the calls
    context-budget = 16384         # like the option --context-budget
    reasoning-budget = 2048        # like the option --reasoning-budget

Options on the command line, then ``ADAPTER_*`` variables, take precedence over the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import typer
from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from adapter.cli.user_config import read_toml
from adapter.core.errors import UsageError
from adapter.grammars.constraint_mode import Constraint
from adapter.parsing.formats import get_format
from adapter.prompting.calling_setup import CallingSetup
from adapter.prompting.system_prompt import Style
from adapter.protocols.token_budgets import MIN_CONTEXT, Budgets

_NOT_IN_FILE = ("config", "help_all")


class ModelSettings(BaseModel):
    """Settings for one model, from a table ``[models."NAME"]``. NAME is the model's name in requests."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: str | None = None
    constraint: Constraint = "off"
    style: Style | None = None
    native: bool = False

    context_budget: int | None = Field(default=None, alias="context-budget", ge=MIN_CONTEXT)
    reasoning_budget: int | None = Field(default=None, alias="reasoning-budget", ge=0)

    @model_validator(mode="after")
    def _require_format(self) -> Self:
        if self.format is None and (self.constraint != "off" or self.style is not None or self.native):
            raise ValueError("format is missing, but constraint, style and native require it")
        return self

    def to_setup(self) -> CallingSetup | None:
        """Return the model's tool-calling setup, or None if the settings name no format.

        Raises UsageError for an unknown format.
        """
        if self.format is None:
            return None
        name, style = get_format(self.format).name, self.style or "trained"
        return CallingSetup(name, style, self.constraint, self.native, uses_template=self.style is None)


class _Models(BaseModel):
    models: dict[str, ModelSettings] = Field(default={})


def use_config_file(context: typer.Context, path: Path) -> None:
    """Use the file's values as the defaults of the command's options. Raises UsageError for an unknown key."""
    names = [str(each.name) for each in context.command.params if each.name not in _NOT_IN_FILE]
    fields: dict[str, Any] = {name.replace("_", "-"): (Any, None) for name in names}
    file = create_model("File", __base__=_Models, __cls_kwargs__={"extra": "forbid"}, **fields)
    values = read_toml(path, file).model_dump(exclude={"models"}, exclude_unset=True)
    repeatable = {str(each.name) for each in context.command.params if getattr(each, "multiple", False)}
    named = {name.replace("-", "_"): value for name, value in values.items()}
    context.default_map = {
        name: [value] if name in repeatable and not isinstance(value, list) else value for name, value in named.items()
    }


def read_model_setups(path: Path | None) -> dict[str, CallingSetup]:
    """Return the tool-calling setups from the file at ``path``: one for each model with a format.

    Returns {} if ``path`` is None. Raises UsageError if the file is invalid.
    """
    setups = {}
    for name, each in _read_models(path).items():
        try:
            setups[name] = each.to_setup()
        except UsageError as error:
            raise UsageError(f"{path}: models.{name}.format: {error}") from error
    return {name: setup for name, setup in setups.items() if setup is not None}


def read_model_budgets(path: Path | None) -> dict[str, Budgets]:
    """Return each model's token budgets from the file at ``path``, or {} if ``path`` is None.

    Raises UsageError if the file is invalid.
    """
    return {name: Budgets(each.context_budget, each.reasoning_budget) for name, each in _read_models(path).items()}


def _read_models(path: Path | None) -> dict[str, ModelSettings]:
    return {} if path is None else read_toml(path, _Models).models
