"""Parse a JSON list of calls after the token ``<|tool_call|>``, which Granite 3 and Phi-4-mini share.

::

    <|tool_call|>[{"name": ..., "arguments": {...}}, ...]                      Granite 3
    <|tool_call|><tool_call>[...]                                              Granite 3.1
    <|tool_call|>[...]<|/tool_call|>                                           Phi-4-mini
    <|tool_call|>[NAME(KEY=VALUE)]                                             small models; also NAME {...} and YAML
    <|tool_call|>call:NAME{...}                                                Gemma 4, whose own token has one bar
    <|tool_call|>{...}<|tool_call|>                                            small models, without a closing marker

A list without a closing marker ends with its brackets.
"""

from __future__ import annotations

from adapter.parsing.bodies.call_announcing_tags import build_announced_reader
from adapter.parsing.bodies.gemma_call import GemmaCall
from adapter.parsing.bodies.python_scanner import read_list as read_python_list
from adapter.parsing.bracket_delimited_json import UntaggedJson
from adapter.parsing.fallback_readers import read_call_or_text
from adapter.parsing.format import BodyResult, BodySource, try_readers
from adapter.parsing.marker_set import get_marker_set
from adapter.parsing.stream_buffer import Reader

OPEN, CLOSE, TAG, TAG_CLOSE = "<|tool_call|>", "<|/tool_call|>", "<tool_call>", "</tool_call>"

read_list = UntaggedJson(
    "arguments", after_marker=True, ends=(OPEN, CLOSE, TAG, TAG_CLOSE, "<|end|>", "<|end_of_text|>")
)
_tag = get_marker_set(TAG)
_gemma = GemmaCall(OPEN, "<tool_call|>", '<|"|>')
_read_lists = try_readers(read_python_list, read_list)
_read_any = build_announced_reader(OPEN, CLOSE)


def read_calls(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the calls after ``<|tool_call|>``, in any of this module's notations."""
    yield from source.skip_space(consumed)
    call = yield from _gemma.read_unmarked(source, consumed)
    if not call.not_a_call:
        return call.with_fixes("foreign-body")
    tag = yield from source.consume_marker(_tag, consumed)
    result = yield from _read_lists(source, consumed)
    if tag or not result.not_a_call:
        return result
    result = yield from read_call_or_text(_read_any, source, consumed)
    if result.not_a_call and source.after_call and not source.was_cut:
        return BodyResult()  # the token in place of a closing marker
    return result
