"""OLMo 3: Python calls, one per line, in ``<function_calls>`` tags.

Format: vLLM's parser for allenai/Olmo-3-7B-Instruct and Olmo-3-7B-Think. Values are JSON::

    <function_calls>get_weather(city="Oslo", days=2, exact=true)
    get_time()</function_calls>

Results are returned under the ``environment`` role. The section in Anthropic's prompts opens with the same tag, so
`invoke_tags` parses its elements.
"""

from __future__ import annotations

import re
from functools import partial

from adapter.core.json.encode import dump_json
from adapter.parsing.bodies.invoke_tags import OPENERS
from adapter.parsing.bodies.python_encoder import encode_call
from adapter.parsing.bodies.python_scanner import build_python_or_json_reader
from adapter.parsing.call_encoders import build_calls_encoder
from adapter.parsing.format import CUT, TEXT, BodyResult, BodySource, CallOpener, Format
from adapter.parsing.stream_buffer import NAME_LIMIT, Reader

OPEN, CLOSE = "<function_calls>", "</function_calls>"

_read_invokes = next(opener.read for opener in OPENERS if opener.marker == OPEN)
_read_calls = build_python_or_json_reader(OPEN, CLOSE)
_CALL_BEGINS = re.compile(r"\{|\[\s*\{|\[?\s*([^\W\d][\w.-]*+)\s*\(")
_CALL_MAY_BEGIN = re.compile(r"\[?\s*+(?:[^\W\d][\w.-]*+\s*+)?")


def read_calls(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the body after ``<function_calls>``: Python, JSON or elements. Any other text is prose."""
    ahead: list[str] = []
    char = yield from source.skip_space(ahead)
    if not char:
        consumed.extend(ahead)
        return CUT if source.at_line_start or source.was_cut else TEXT
    match = yield from source.peek_match(_CALL_BEGINS, NAME_LIMIT, _CALL_MAY_BEGIN.fullmatch)
    source.push_back("".join(ahead))
    if match is None or (match[1] and not source.at_line_start and source.tools.match(match[1]) is None):
        return (yield from _read_invokes(source, consumed))
    result = yield from _read_calls(source, consumed)
    # JSON's true, false and null belong to this format.
    return result.remove_fixes("json-literal")


FORMAT = Format(
    name="olmo3",
    aliases=("olmo", "olmo3_think"),
    openers=(CallOpener(OPEN, read_calls),),
    encode_calls=build_calls_encoder(
        partial(encode_call, encode_value=dump_json),
        between="\n",
        opening=OPEN,
        closing=CLOSE,
    ),
    stray_closers=(CLOSE,),
    stop_sequences=("<|im_end|>",),
    special_tokens=(OPEN, CLOSE, "<think>", "</think>"),
    model_patterns=(r"olmo-?_?[3-9]",),
    template_fingerprints=(OPEN,),
)
