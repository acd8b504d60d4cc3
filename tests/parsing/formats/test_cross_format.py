"""The folder's files are the formats, and a parser with one expected format parses the calls of all."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import pytest

from adapter.parsing import formats
from adapter.parsing.formats import FORMATS, ORDER
from adapter.parsing.marker_tables import build_marker_tables
from adapter.prompting.deriving.codegen import PLACEHOLDER


def test_format_name_is_its_file_name():
    files = {
        module.name: import_module(f"adapter.parsing.formats.{module.name}")
        for module in iter_modules(formats.__path__)
    }
    assert {name: vars(module).get("FORMAT") for name, module in files.items() if hasattr(module, "FORMAT")} == FORMATS


def test_order_names_each_format_once():
    assert tuple(FORMATS)[: len(ORDER)] == ORDER


def test_aliases_are_unique():
    """No alias is the name of another format."""
    aliases = [alias for format in FORMATS.all for alias in format.aliases]
    assert len({*aliases, *FORMATS}) == len(aliases) + len(FORMATS)


NEEDS_EXPLICIT_NAME = {"tool_request", "tool_elements", "react", "qwen_agent"}
"""Formats that programs teach to any model."""


@pytest.mark.parametrize("name", FORMATS)
def test_format_docstring_names_its_family(name):
    """The placeholders of `adapter derive --emit` were filled in."""
    first = (import_module(f"adapter.parsing.formats.{name}").__doc__ or "").partition("\n\n")[0]
    assert first
    assert PLACEHOLDER not in first
    assert FORMATS[name].model_patterns or name in NEEDS_EXPLICIT_NAME, (
        f"{name}: add regular expressions for model names to `model_patterns`"
    )


@pytest.mark.parametrize("format", FORMATS.all, ids=lambda format: format.name)
def test_shared_reader_is_not_tried_twice(format):
    """A fallback is used at a marker only if its reader differs."""
    tables = build_marker_tables((format,), (), FORMATS.all)
    own = {opener.marker.lower(): opener for opener in reversed(format.openers)}
    first = build_marker_tables(FORMATS.all, ()).openers
    for marker, opener in own.items():
        is_shared = first[marker].read is opener.read
        assert (tables.openers[marker].read is opener.read) == is_shared, marker
