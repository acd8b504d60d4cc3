"""HyperCLOVA X SEED Think 14B: a JSON list in a message to ``tool/function_call``.

Format: the parsers that the card of naver-hyperclovax/HyperCLOVAX-SEED-Think-14B names
(NAVER-Cloud-HyperCLOVA-X/hcx-vllm-plugin), and vllm-project/vllm#44171. Reasoning, answer and calls are messages of the
assistant, one after the other; the prompt ends with ``<|im_start|>assistant``, or with ``/think`` and a line break
after that::

    /think
    reasoning<|im_end|>
    <|im_start|>assistant -> tool/function_call
    [{"name": "get_weather", "arguments": {"city": "Oslo"}}]<|im_end|><|stop|>

Reasoning that was begun in the prompt is content here: nothing tells it from an answer before a call. Results go back
in a message of ``tool/function_call``. HyperCLOVA X SEED Think 32B writes `glm45`.
"""

from __future__ import annotations

from adapter.parsing.bare_json import UntaggedJson
from adapter.parsing.encoding import list_encoder, result_encoder
from adapter.parsing.format import TEXT, BodyResult, CallOpener, Format, OpaqueSection, ReadContext
from adapter.parsing.marker_set import markers_for
from adapter.parsing.stream_buffer import Reader, StreamBuffer, take_marker

START, END, STOP, END_OF_TURN = "<|im_start|>", "<|im_end|>", "<|stop|>", "<|endofturn|>"
ASSISTANT, TO_TOOL, THINK = START + "assistant", " -> tool/function_call\n", "/think\n"
HEADER = ASSISTANT + TO_TOOL

_REASONING = OpaqueSection(
    is_reasoning=True, ends=(END,), before=(START, STOP, END_OF_TURN), closes=(f"{END}\n{ASSISTANT}",)
)

_think = markers_for(THINK)
read_list = UntaggedJson("arguments", after_marker=True, ends=(END, STOP))


def read_stripped(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
    """The list after a header that began in the prompt, or whose token a server took away."""
    return (yield from read_list(source, span, context)) if context.at_line_start else TEXT


def read_head(source: StreamBuffer, span: list[str], _context: ReadContext) -> Reader[BodyResult]:
    """``/think`` on a line of its own begins reasoning."""
    span.append((yield from take_marker(source, _think)))
    return BodyResult(section=_REASONING) if span[-1] else TEXT


FORMAT = Format(
    name="hyperclovax",
    aliases=("hyperclovax_seed_think_14b", "hcx"),
    openers=(
        CallOpener(HEADER, read_list),
        CallOpener("assistant" + TO_TOOL, read_stripped),
        CallOpener(TO_TOOL.lstrip(), read_stripped),
    ),
    read_header=read_head,
    encode_calls=list_encoder(HEADER),
    encode_result=result_encoder(f"{START}tool/function_call\n", f"{END}\n"),
    end_tokens=(STOP, END_OF_TURN),
    result_markers=(START + "tool/function_call",),
    stop_sequences=(STOP, END_OF_TURN),
    special_tokens=(START, END, STOP, END_OF_TURN),
    model_patterns=(r"hyperclova-?x.*14b",),
    template_fingerprints=(TO_TOOL.strip(),),
)
