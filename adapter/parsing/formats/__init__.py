"""How model families write calls: one file, one format.

A file of this folder with a ``FORMAT`` in it is a format, by the file's name. All of them are loaded, in some 30 ms,
when the first is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from pkgutil import iter_modules

from adapter.core.arguments import NONE, check_types
from adapter.core.errors import UsageError
from adapter.parsing.format import Format

__all__ = [
    "DEFAULT_FORMAT",
    "DERIVED",
    "FORMATS",
    "FROM_TEMPLATE",
    "MAX_DERIVED",
    "NEAREST",
    "ORDER",
    "FormatRegistry",
    "cross_format",
    "get_format",
    "guess_format",
    "hermes",
    "register_format",
    "resolve_format",
]

ORDER = (
    "hermes", "ernie45", "qwen3_coder", "mimo", "llama3_json", "glm45", "glm47", "poolside_v1", "spark25",
    "iquest_q1", "kimi_k2", "kimi_k25", "kimi_k3", "deepseek_v3", "deepseek_v31", "deepseek_v32", "deepseek_v4",
    "deepseek_v41", "mistral", "harmony", "pythonic", "gemma4", "functiongemma", "gemma3", "phi4_mini_json",
    "firefunction", "granite4", "granite", "granite_20b_fc", "internlm", "jamba", "tool_request", "minimax_m1",
    "olmo3", "minimax_m2", "minimax_m3", "anthropic", "dots", "muse_glimmer", "seed_oss", "step3", "step3p5",
    "longcat", "longcat2", "hunyuan_a13b", "hy_v3", "hy_v4", "apriel", "nemotron", "tool_elements", "cohere", "lfm2",
    "minicpm", "minicpm5", "solar_open2", "ling3", "react", "qwen_agent", "xlam", "apertus", "k2_horizon",
    "gigachat3", "gigachat31", "gigachat35", "inkling", "functionary_v2", "functionary_v31", "functionary",
)  # fmt: skip
"""Where several formats could read a text, or are known by a model's name, the first of these does; where the marks of
several stand in a template, the last. Formats that are not named here come after these."""


class FormatRegistry(Mapping[str, Format]):
    """All formats by name, in the order in which they are tried."""

    @cached_property
    def _by_name(self) -> Mapping[str, Format]:
        modules = [import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__)]
        formats: dict[str, Format] = {each.FORMAT.name: each.FORMAT for each in modules if hasattr(each, "FORMAT")}
        return {name: formats.pop(name) for name in ORDER} | formats

    @cached_property
    def all(self) -> tuple[Format, ...]:
        return tuple(self.values())

    @cached_property
    def by_alias(self) -> Mapping[str, Format]:
        return {alias: format for format in self.all for alias in format.aliases}

    def __getitem__(self, name: str) -> Format:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)


FORMATS = FormatRegistry()

DEFAULT_FORMAT = "hermes"
"""For models that nothing is known about: the format most models have seen."""
NEAREST = 5
"""Names that are shown in place of an unknown one."""


FROM_TEMPLATE = "from-template"
"""In place of a format's name: the one that is derived from the model's template."""
DERIVED = "template_"
"""What the names of derived formats begin with; the template's hash follows."""
MAX_DERIVED = 256
"""Derived formats that are known by their names in one process."""
_derived: dict[str, Format] = {}


def register_format(format: Format) -> None:
    """Have `get_format` find ``format``, which was derived, by its name in this process: until `MAX_DERIVED` others
    were, of which the oldest is forgotten. It is not one of `FORMATS`: nothing is recognised by it."""
    _derived.pop(format.name, None)
    _derived[format.name] = format
    while len(_derived) > MAX_DERIVED:
        _derived.pop(next(iter(_derived)))


def resolve_format(name: str) -> Format | None:
    """The format to tell a `Parser` of answers that may come in any: a derived one, which is none of `FORMATS`."""
    return _derived.get(name)


def get_format(name: str | Format) -> Format:
    """The format called ``name`` (or an alias, in any case); a format itself. Raises UsageError naming the nearest."""
    if isinstance(name, Format):
        return name
    if not isinstance(name, str):
        raise UsageError(f"a format is given by its name, got {name!r}; docs/formats.md has all")
    if name in _derived:
        return _derived[name]
    spelling = name.strip().lower().replace("-", "_").replace(".", "_")
    found = FORMATS.get(spelling) or FORMATS.by_alias.get(spelling) or FORMATS.by_alias.get(name.strip().lower())
    if found is None and name.startswith(DERIVED):
        raise UsageError(
            f"{name!r} was derived from a chat template in another process; give the template again "
            "(adapter.derive), or keep the format with `adapter derive --emit`"
        )
    if found is None:
        from difflib import get_close_matches

        near = get_close_matches(spelling, (*FORMATS, *FORMATS.by_alias), n=NEAREST, cutoff=0)
        hint = f" (did you mean {near[0]!r}?)" if get_close_matches(spelling, near) else ""
        raise UsageError(
            f"unknown format {name!r}; of {len(FORMATS)} the nearest are {', '.join(near)}{hint}. "
            "docs/formats.md has all"
        )
    return found


def guess_format(model: str | None = None, template: str | None = None) -> str | None:
    """Return the name of a model's format by its chat template or name, or None if unknown.

    ``model``: a model's name as servers and files spell it (``qwen3-coder:30b``,
    ``Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf``). ``template``: the text of its chat
    template; it decides where both are given, because it is what the model is shown.
    """
    check_types("guess", model=(model, str, NONE), template=(template, str, NONE))
    if template:
        # Later entries are the more specific: Qwen3-Coder's template also names <tool_call>, Seed's its functions.
        marked = [
            name for name, entry in FORMATS.items() if any(mark in template for mark in entry.template_fingerprints)
        ]
        if marked:
            return marked[-1]
    if model:
        for name, entry in FORMATS.items():
            if any(re.search(pattern, model, re.IGNORECASE) for pattern in entry.model_patterns):
                return name
    return None
