"""Patterns of schemas as grammars: the output of a real llama.cpp matches them in Python's `re`."""

from __future__ import annotations

import json
import re

import pytest

from adapter.grammars.gbnf import build_gbnf
from adapter.grammars.regex_to_gbnf import build_string_rule
from adapter.parsing.parser import parse
from adapter.tools.tool_set import ToolSet
from benchmarks.valid_calls import PATTERNS
from tests.grammars.test_gbnf import arguments_of, parameter, sample

MORE = (
    *(r"^[^a]$", r"^\W\D$", r"a|^b$", r"^(?P<year>\d{4})$", r"^x{2,}$", r"^a*?b+?$"),
    *("^[\"\\\\\\/]+$", r"^[\s]$", r"^[^\S]$", r"^[\w.+-]+$", r"^[]]", r"^\/\-\_$", "", "^(){3}$", r"^[a\d-]+$"),
)  # fmt: skip


@pytest.mark.parametrize("pattern", [*PATTERNS, *MORE])
def test_grammar_output_matches_the_pattern(random_chat, pattern):
    tool = parameter({"type": "string", "pattern": pattern})
    assert build_string_rule(pattern, 0, 20) is not None
    for seed in range(3):
        assert re.search(pattern, arguments_of(random_chat, tool, seed)["p"])


@pytest.mark.parametrize(
    "pattern",
    [
        r"\bword\b",
        r"(?=.*\d).+",
        r"(a)\1",
        r"\p{L}+",
        r"(?i)a",
        "(",
        ")",
        "[",
        "a{2001}",
        "a**",
        "*",
        "x{,3}",
        r"\cA",
        "a^b",
        "\\",
    ],
)
def test_unsupported_pattern_leaves_the_string_unconstrained(random_chat, pattern):
    assert build_string_rule(pattern) is None
    tool = parameter({"type": "string", "pattern": pattern, "maxLength": 9})
    assert json.loads(sample(random_chat, build_gbnf(ToolSet([tool])))[12:-13])["arguments"]["p"] is not None


@pytest.mark.parametrize(
    ("pattern", "shortest", "longest"),
    [(r"^[a-z]+$", 3, 5), (r"^\d+(-\d+)*$", 0, 7), ("x", 0, 4), (r"^\S*$", 6, 6), (r"^(a|bc*)+$", 0, 6)],
)
def test_length_limits_apply_with_a_pattern(random_chat, pattern, shortest, longest):
    schema = {"type": "string", "pattern": pattern, "minLength": shortest, "maxLength": longest}
    for seed in range(3):
        written = arguments_of(random_chat, parameter(schema), seed)["p"]
        assert shortest <= len(written) <= longest
        assert re.search(pattern, written)


def test_pattern_incompatible_with_length_is_ignored():
    assert build_string_rule(r"^\d{8}$", 0, 7) is None
    assert build_string_rule(r"^\d{8}$", 9, None) is None


BARE = [pattern for pattern in (*PATTERNS, *MORE) if build_string_rule(pattern, 0, 20, is_bare=True) is not None]


@pytest.mark.parametrize("pattern", [*BARE, r"^a\t?$", "^(<|b)$"])
def test_verbatim_text_matches_the_pattern(random_chat, pattern):
    """Without line ends and tags, unless the pattern needs them."""
    tools = ToolSet([parameter({"type": "string", "pattern": pattern})])
    text = sample(random_chat, build_gbnf(tools, format="glm45", max_string=20))
    (call,) = parse(text, tools, "glm45").calls
    assert re.search(pattern, call.arguments["p"])


def test_few_patterns_cannot_be_written_bare():
    """Only those for nothing but line ends or tabs."""
    assert {*PATTERNS, *MORE} - {*BARE} <= {r"^[\s]$", r"^[^\S]$", ""}
    assert build_string_rule("^<$", is_bare=True) is None
