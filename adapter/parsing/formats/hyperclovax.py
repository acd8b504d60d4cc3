"""HyperCLOVA X SEED Think 14B: a JSON list in a message to ``tool/function_call``.

Format: the parsers that the model card of naver-hyperclovax/HyperCLOVAX-SEED-Think-14B names
(NAVER-Cloud-HyperCLOVA-X/hcx-vllm-plugin), and vllm-project/vllm#44171. Reasoning, answer and calls are consecutive
messages of the assistant. The prompt ends with ``<|im_start|>assistant``, after which ``/think`` and a line break may
follow::

    /think
    reasoning<|im_end|>
    <|im_start|>assistant -> tool/function_call
    [{"name": "get_weather", "arguments": {"city": "Oslo"}}]<|im_end|><|stop|>

Reasoning that began in the prompt is parsed as content, because it cannot be distinguished from an answer before a
call. Results are returned in a message of ``tool/function_call``. HyperCLOVA X SEED Think 32B writes `glm45`.
"""

from __future__ import annotations

import re

from adapter.parsing.bracket_delimited_json import UntaggedJson
from adapter.parsing.call_encoders import build_list_encoder, build_result_encoder
from adapter.parsing.format import TEXT, BodyResult, BodySource, CallOpener, Format, OpaqueSection
from adapter.parsing.marker_set import get_marker_set
from adapter.parsing.stream_buffer import Reader

START, END, STOP, END_OF_TURN = "<|im_start|>", "<|im_end|>", "<|stop|>", "<|endofturn|>"
ASSISTANT, TO_TOOL, THINK = START + "assistant", " -> tool/function_call\n", "/think\n"
HEADER = ASSISTANT + TO_TOOL

_REASONING = OpaqueSection(
    is_reasoning=True, ends=(END,), before=(START, STOP, END_OF_TURN), closes=(f"{END}\n{ASSISTANT}",)
)

_RECIPIENT = re.compile(r"[ >-]*tool/\w*\s*(?=[\[{])")
_MAY_BE_RECIPIENT = re.compile(r"[ >-]*+t?o?o?l?/?\w*\s*")

_think = get_marker_set(THINK)
read_list = UntaggedJson("arguments", after_marker=True, ends=(END, STOP))


def read_message(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse a list of calls after a message header that differs from `HEADER`."""
    match = yield from source.peek_match(_RECIPIENT, len(HEADER), _MAY_BE_RECIPIENT.fullmatch)
    if match is None:
        return TEXT
    source.consume_match(match, consumed)
    return (yield from read_list(source, consumed)).with_repairs("misspelt-open-tag")


def read_stripped(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse a list of calls whose header began in the prompt, or lost its first token to a server."""
    return (yield from read_list(source, consumed)) if source.at_line_start else TEXT


def read_head(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Begin a section of reasoning at ``/think`` on a separate line."""
    return BodyResult(section=_REASONING) if (yield from source.consume_marker(_think, consumed)) else TEXT


FORMAT = Format(
    name="hyperclovax",
    aliases=("hyperclovax_seed_think_14b", "hcx"),
    openers=(
        CallOpener(HEADER, read_list),
        *(CallOpener(f"{start} -", read_message) for start in (ASSISTANT, START + ASSISTANT)),
        *(
            CallOpener(start.replace("\n", line_end), read_stripped)
            for start in ("assistant" + TO_TOOL, TO_TOOL.lstrip())
            for line_end in ("\n", "\r\n")
        ),
    ),
    read_header=read_head,
    encode_calls=build_list_encoder(HEADER),
    encode_result=build_result_encoder(f"{START}tool/function_call\n", f"{END}\n"),
    end_tokens=(STOP, END_OF_TURN),
    result_markers=(START + "tool/function_call",),
    stop_sequences=(STOP, END_OF_TURN),
    special_tokens=(START, END, STOP, END_OF_TURN),
    model_patterns=(r"hyperclova-?x.*14b",),
    template_fingerprints=(TO_TOOL.strip(),),
)
