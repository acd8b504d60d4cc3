"""Texts are cached up to a total number of characters."""

from __future__ import annotations

from adapter.core.text.text_cache import TextCache
from adapter.prompting.escaping import escape_control_tokens
from adapter.tools.tool_set import ToolSet


def test_least_recently_used_texts_are_evicted():
    cache = TextCache(30)
    for key in "abc":
        cache.store(key, key * 9, 1)
    assert cache.find("a") == "aaaaaaaaa"
    cache.store("d", "d" * 9, 1)
    assert [cache.find(key) is not None for key in "abcd"] == [True, False, True, True]


def test_replaced_text_is_counted_once():
    cache = TextCache(20)
    for _ in range(5):
        cache.store("a", "a" * 9, 1)
    cache.store("b", "b" * 9, 1)
    assert (cache.find("a"), cache.find("b")) == ("a" * 9, "b" * 9)


def test_text_larger_than_the_cache_is_not_kept():
    cache = TextCache(5)
    cache.store("a", "a" * 9, 1)
    assert cache.find("a") is None


def test_escaped_text_depends_on_the_tools():
    """A cached long text is escaped again for another set of tools."""
    text = "<read_file>\n" + "line\n" * 100
    plain = escape_control_tokens(text)
    with_tool = escape_control_tokens(text, None, ToolSet([{"name": "read_file", "parameters": {}}]))
    assert plain != with_tool
    assert escape_control_tokens(text) == plain
