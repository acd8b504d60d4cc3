"""Complete commands in bash, zsh, fish and PowerShell.

Typer's scripts for these shells run ``adapter`` with the unfinished command line in environment variables. To respond
quickly, only that line's command is imported. An option's values are completed if they are cheap to list; otherwise,
the shell completes file names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typer._click.core import Context, Parameter
    from typer._click.shell_completion import CompletionItem

REQUESTS = ("_ADAPTER_COMPLETE", "_TOOLCALL_ADAPTER_COMPLETE")
"""Environment variables that shells set when they request completions. There is one for each name of the program."""

CHOICES: dict[tuple[str, str], tuple[str, ...]] = {
    ("approve", "MODE"): ("ask", "auto-edit", "yolo", "plan"),
    ("constraint", "MODE"): ("auto", "off", "arguments", "prefer", "required"),
    ("edits", "MODE"): ("auto", "exact", "tolerant"),
    ("guardrails", "NAMES"): ("on", "off"),
    ("guide", "MODE"): ("auto", "on", "off"),
    ("policy", "NAME"): ("strict", "safe", "approved", "lenient"),
    ("prompt", "MODE"): ("auto", "own", "words"),
    ("sandbox", "NAME"): ("auto", "bwrap", "landlock", "require", "none"),
    ("search", "NAME"): ("exa", "brave", "searxng"),
    ("shape", "NAME"): ("openai", "sharegpt", "text"),
    ("style", "NAME"): ("compact", "args", "full", "trained"),
    ("ways", "NAME"): ("bare", "ours", "agent"),
}
"""Maps an option's name and metavar to its values. The option's help text must name the same values."""


def split_words_to_complete(environ: Mapping[str, str]) -> list[str]:
    """Return the words of the command line to complete, or [] if no shell requested completions."""
    if not any(name in environ for name in REQUESTS):
        return []
    return (environ.get("_TYPER_COMPLETE_ARGS") or environ.get("COMP_WORDS", "")).split()


def complete_values(option: Parameter) -> None:
    """Let shells complete an option's values. Does nothing if the values are unknown."""
    key = (option.name or "", str(option.metavar))
    values = (lambda: CHOICES[key]) if key in CHOICES else _LISTS.get(key)
    if values is not None:
        option.shell_complete = partial(_complete, values)  # type: ignore[method-assign]


def _complete(values: Callable[[], Iterable[str]], _: Context, incomplete: str) -> list[CompletionItem]:
    from typer._click.shell_completion import CompletionItem

    return [CompletionItem(value) for value in values() if value.startswith(incomplete)]


def _list_formats() -> Iterable[str]:
    from adapter.parsing.formats import FORMATS

    return ("auto", "from-template", *sorted(FORMATS))


def _list_dialects() -> Iterable[str]:
    from adapter.dialects import NO_TOOLS, list_dialect_names

    return (*list_dialect_names(), NO_TOOLS.name)


def _list_profiles() -> Iterable[str]:
    from adapter.backends.probe_profiles import find_profile_directory

    return ("auto", "none", *sorted(path.stem for path in find_profile_directory().glob("*.toml")))


_LISTS: dict[tuple[str, str], Callable[[], Iterable[str]]] = {
    ("format", "NAME"): _list_formats,
    ("dialect", "NAME"): _list_dialects,
    ("profile", "NAME"): _list_profiles,
}
