"""GLM 4 and Z1 (0414): the tool's name on a separate line, and then the arguments.

Format: the chat templates of THUDM/glm-4-9b-chat and GLM-4-9B-0414, which do not mention markers, and outputs of the
model in ml-explore/mlx-swift-lm, issue 491. A call is the whole answer, so an answer has at most one::

    get_weather
    {"city": "Oslo"}

Some answers begin with a sentence.

Results are returned under the ``observation`` role.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from adapter.parsing.bodies.recipient_header import consume_name, read_arguments
from adapter.parsing.call_encoders import build_calls_encoder, encode_json_arguments
from adapter.parsing.fallback_readers import read_call_or_text
from adapter.parsing.format import TEXT, BodyResult, BodySource, CallOpener, Format
from adapter.parsing.marker_set import get_marker_set
from adapter.parsing.stream_buffer import NAME_LIMIT, Reader

_json_below = get_marker_set("\n{")
_NAME_LINE = re.compile(r"([\w.:/-]+)[ \t]*\n")


def read_named_line(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse a known tool's name (or any name, in a session without tools) and the arguments on the next line."""
    ahead: list[str] = []
    any_name = source.expected_format == "glm4_0414" and not source.tools
    yield from source.skip_space(ahead)
    name = yield from consume_name(source, ahead, _json_below, any_name=any_name)
    if not name:
        source.push_back("".join(ahead))
        return TEXT
    source.push_back("{")
    consumed.append("".join(ahead)[:-1])
    return (yield from read_arguments(name, source, consumed, ENDS))


def build_openers(names: Sequence[str]) -> tuple[CallOpener, ...]:
    """Return the opening markers of calls below other text: a line with the tool's name, and a brace on the next
    line."""
    return tuple(CallOpener(f"\n{name}\n{{", _read_below_text) for name in names)


def _read_below_text(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the arguments below a line with a tool's name, in the middle of an answer.

    They are a call only after another call, or if the answer ends or continues with a tool's name after them. If
    another format is expected, the tool must also be read-only.
    """
    marker = consumed.pop()
    source.push_back(marker[-1])
    consumed.append(marker[:-1])
    tool = source.tools.match(marker[1:-2])
    read = partial(read_arguments, tool.name if tool else marker[1:-2], ends=ENDS)
    if source.after_call:
        return (yield from read(source, consumed))
    is_own = source.expected_format == "glm4_0414"

    def read_last(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        result = yield from read(source, consumed)
        space: list[str] = []
        is_last = (yield from source.skip_space(space)) == ""
        following = yield from source.peek_match(_NAME_LINE, NAME_LIMIT, lambda ahead: "\n" not in ahead)
        is_last = is_last or (following is not None and source.tools.match(following[1]) is not None)
        source.push_back("".join(space))
        return result if is_last and (is_own or (tool is not None and tool.effect == "read")) else TEXT

    result = yield from read_call_or_text(read_last, source, consumed, keeps_error=is_own)
    return result if is_own else result.with_fixes("no-markers")


ENDS = ("<|observation|>", "<|user|>")

FORMAT = Format(
    name="glm4_0414",
    aliases=("glm_z1", "chatglm3", "chatglm4"),
    openers=(),
    build_tool_openers=build_openers,
    read_stripped_start=read_named_line,
    encode_calls=build_calls_encoder(encode_json_arguments, "{name}\n", between="\n"),
    end_tokens=ENDS,
    stop_sequences=(*ENDS, "<|endoftext|>"),
    model_patterns=(r"glm-?_?4-?:?_?\d+b", r"glm-?_?z1", r"chatglm-?[34]"),
    template_fingerprints=("在调用上述函数时，请使用 Json 格式表示调用的参数",),
)
