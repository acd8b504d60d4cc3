"""The folder's files are the formats, and a parser that was told one reads the calls of all."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import pytest

from adapter.parsing import formats
from adapter.parsing.formats import FORMATS, ORDER
from adapter.parsing.formats.cross_format import OTHERS
from adapter.parsing.marker_tables import build_marker_tables
from adapter.prompting.deriving.codegen import PLACEHOLDER


def test_each_format_has_its_file_s_name():
    files = {
        module.name: import_module(f"adapter.parsing.formats.{module.name}")
        for module in iter_modules(formats.__path__)
    }
    assert {name: vars(module).get("FORMAT") for name, module in files.items() if hasattr(module, "FORMAT")} == FORMATS


def test_the_order_names_each_format_once():
    """Those that it does not name come after these."""
    assert tuple(FORMATS)[: len(ORDER)] == ORDER


def test_no_two_formats_share_an_alias():
    """Nor is one the name of another format."""
    aliases = [alias for format in FORMATS.all for alias in format.aliases]
    assert len({*aliases, *FORMATS}) == len(aliases) + len(FORMATS)


ASKED_FOR = {"tool_request", "tool_elements", "react", "qwen_agent"}
"""Formats that programs ask any model for."""


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_says_whose_it_is(name):
    """What `adapter derive --emit` leaves open was filled in."""
    first = (import_module(f"adapter.parsing.formats.{name}").__doc__ or "").partition("\n\n")[0]
    assert first
    assert PLACEHOLDER not in first
    assert FORMATS[name].model_patterns or name in ASKED_FOR, (
        f"{name}: add regular expressions for model names to `models`"
    )


@pytest.mark.parametrize("format", FORMATS.all, ids=lambda format: format.name)
def test_a_format_that_shares_a_reader_does_not_read_twice(format):
    """What another format has at the told one's marker is asked only where it is another reader."""
    tables = build_marker_tables((format,), (), OTHERS)
    own = {opener.marker.lower(): opener for opener in reversed(format.openers)}
    for marker, opener in own.items():
        is_shared = OTHERS.openers(())[marker].read is opener.read
        assert (tables.openers[marker].read is opener.read) == is_shared, marker
