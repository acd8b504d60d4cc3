"""Render system prompts and messages from the Jinja templates in ``prompts/``.

A user's folder can contain templates with the same names, which replace the packaged ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from jinja2 import (
    ChoiceLoader,
    Environment,
    FileSystemLoader,
    StrictUndefined,
    TemplateNotFound,
    TemplateSyntaxError,
    UndefinedError,
)

from adapter.core import package_data
from adapter.core.errors import UsageError


def render_prompt_template(name: str, values: Mapping[str, object], custom_folder: str | None) -> str:
    """Render the template ``name`` with ``values``. Raises UsageError if the template is missing or invalid.

    ``custom_folder`` is a folder of templates that replace packaged ones with the same names.
    """
    try:
        return _create_environment(custom_folder).get_template(name).render(values)
    except TemplateNotFound as error:
        raise UsageError(f"prompt template {error.name!r} not found in {custom_folder or 'prompts/'}") from error
    except TemplateSyntaxError as error:
        raise UsageError(f"line {error.lineno} of prompt template {error.name} is invalid: {error.message}") from error
    except UndefinedError as error:
        raise UsageError(f"prompt template {name} fails: {error}; available variables: {', '.join(values)}") from error


def check_folder(custom_folder: str | None) -> None:
    """Raise UsageError if ``custom_folder`` is neither None nor an existing folder."""
    if custom_folder and not Path(custom_folder).is_dir():
        raise UsageError(f"folder of prompt templates not found: {custom_folder!r}; create it, or check the path")


@lru_cache(maxsize=8)
def _create_environment(custom_folder: str | None) -> Environment:
    """Return a Jinja environment that caches compiled templates and reloads changed files."""
    check_folder(custom_folder)
    folders = (*([custom_folder] if custom_folder else []), package_data.find_data_directory("prompts"))
    loader = ChoiceLoader([FileSystemLoader(str(folder)) for folder in folders])
    return Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
