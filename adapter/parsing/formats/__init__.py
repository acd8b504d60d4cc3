"""The formats of model families, one per file.

A file in this folder that defines ``FORMAT`` is a format, and has its name. All formats are loaded together when one is
first needed, which takes about 30 ms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from pkgutil import iter_modules

from adapter.core.argument_checks import NONE, PathLike, check_types, format_value
from adapter.core.errors import UsageError
from adapter.parsing.format import Format

__all__ = [
    "DEFAULT_FORMAT", "DERIVED", "FORMATS", "FROM_TEMPLATE", "MAX_DERIVED", "NEAREST", "ORDER", "FormatRegistry",
    "get_format", "guess_format", "hermes", "is_format_file", "register_format", "resolve_format", "tool_elements",
]  # fmt: skip

ORDER = (
    "hermes", "ernie45", "qwen3_coder", "mimo", "llama3_json", "glm45", "glm47", "poolside_v1", "spark25",
    "iquest_q1", "kimi_k2", "kimi_k25", "kimi_k3", "deepseek_v3", "deepseek_v31", "deepseek_v32", "deepseek_v4",
    "deepseek_v41", "mistral", "harmony", "pythonic", "gemma4", "functiongemma", "gemma3", "phi4_mini_json",
    "firefunction", "granite4", "granite", "granite_20b_fc", "internlm", "jamba", "tool_request", "minimax_m1",
    "olmo3", "minimax_m2", "minimax_m3", "anthropic", "dots", "muse_glimmer", "seed_oss", "step3", "step3p5",
    "longcat", "longcat2", "hunyuan_a13b", "hy_v3", "hy_v4", "apriel", "nemotron", "tool_elements", "cohere", "lfm2",
    "minicpm", "minicpm5", "solar_open2", "ling3", "react", "qwen_agent", "xlam", "apertus", "k2_horizon",
    "gigachat3", "gigachat31", "gigachat35", "inkling", "functionary_v2", "functionary_v31", "functionary", "plamo3",
    "openpangu", "cwm", "step_audio2", "mirothinker", "telechat4"
)  # fmt: skip
"""The priority of the formats. If several formats can parse a text or match a model's name, the first is used. If the
fingerprints of several formats occur in a template, the last is used. Formats not listed here come last."""


class FormatRegistry(Mapping[str, Format]):
    """All formats by name, in order of priority."""

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
"""Format for unknown models: the one that most models have seen in training."""
NEAREST = 5
"""Maximum number of similar names that are suggested for an unknown name."""


FROM_TEMPLATE = "from-template"
"""Value of a format option: derive the format from the model's chat template."""
DERIVED = "template_"
"""Prefix of the names of derived formats, before a hash of the template."""
MAX_DERIVED = 256
"""Maximum number of derived formats that one process can find by name."""
FILE_SUFFIX = ".toml"
"""Suffix that distinguishes paths of format files from names of formats."""
_derived: dict[str, Format] = {}


def register_format(format: Format) -> None:
    """Register a derived ``format``, so that `get_format` finds it by name in this process. Beyond `MAX_DERIVED`, the
    oldest is dropped. The format is not added to `FORMATS`, so it is never detected automatically."""
    _derived.pop(format.name, None)
    _derived[format.name] = format
    while len(_derived) > MAX_DERIVED:
        _derived.pop(next(iter(_derived)))


def resolve_format(name: str) -> Format | None:
    """Return the derived format called ``name``. For any other name, return None. A `Parser` with the format None
    accepts every format."""
    return _derived.get(name)


def is_format_file(name: object) -> bool:
    """Return whether ``name`` is the path of a format file rather than the name of a format."""
    return name.lower().endswith(FILE_SUFFIX) if isinstance(name, str) else isinstance(name, PathLike)


def get_format(name: str | PathLike | Format) -> Format:
    """Return the format called ``name``, or ``name`` itself if it is a `Format`.

    ``name`` may be an alias, in any letter case, or the path of a format file (``.toml``), whose format is then
    registered. Raises UsageError for an unknown name or an invalid file.
    """
    if isinstance(name, Format):
        return name
    if is_format_file(name):
        from adapter.parsing.format_file import read_format_file

        format = read_format_file(name, FORMATS)
        register_format(format)
        return format
    if not isinstance(name, str):
        raise UsageError(
            f"expected the name of a format, got {format_value(name)}; docs/formats.md lists all names. Pass tools as "
            "tools=..."
        )
    if name in _derived:
        return _derived[name]
    spelling = name.strip().lower().replace("-", "_").replace(".", "_")
    found = FORMATS.get(spelling) or FORMATS.by_alias.get(spelling) or FORMATS.by_alias.get(name.strip().lower())
    if found is None and name.startswith(DERIVED):
        raise UsageError(
            f"{name!r} was derived from a chat template in another process; derive it again (adapter.derive), "
            "or keep the format with `adapter derive --emit`"
        )
    if found is None:
        from difflib import get_close_matches

        near = get_close_matches(spelling, (*FORMATS, *FORMATS.by_alias), n=NEAREST, cutoff=0)
        hint = f" (did you mean {near[0]!r}?)" if get_close_matches(spelling, near) else ""
        raise UsageError(
            f"unknown format {name!r}; the nearest of {len(FORMATS)} are {', '.join(near)}{hint}. "
            "docs/formats.md lists all"
        )
    return found


def guess_format(model: str | None = None, template: str | None = None) -> str | None:
    """Return the name of the format that a model writes, or None if it is unknown.

    - ``model``: a model's name as servers and files spell it (``qwen3-coder:30b``,
      ``Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf``).
    - ``template``: the text of the model's chat template. It has priority, because it defines the actual prompt.
    """
    check_types("guess", model=(model, str, NONE), template=(template, str, NONE))
    if template:
        # Later formats are more specific: Qwen3-Coder's template also contains <tool_call>, a fingerprint of Hermes.
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
