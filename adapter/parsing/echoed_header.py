"""Skip the header of an assistant turn that the model repeats after the chat template. The answer follows the
header."""

from __future__ import annotations

from adapter.parsing.marker_set import MarkerSet
from adapter.parsing.stream_buffer import Reader, StreamBuffer

HEADERS = (
    "<|im_start|>assistant",
    "<|start_header_id|>assistant<|end_header_id|>",
    "<|header_start|>assistant<|header_end|>",
    "<start_of_turn>model",
    "<|turn>model",
    "<|assistant|>",
    "<｜Assistant｜>",
    "<|im_assistant|>assistant<|im_middle|>",
    "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
    "<|CHATBOT_TOKEN|>",
)
_headers = MarkerSet(*HEADERS)


def skip_echoed_header(source: StreamBuffer) -> Reader[str]:
    """Consume an assistant header at the start of an answer, and the whitespace around it. Return both, or "" without a
    header."""
    ahead: list[str] = []
    if (yield from source.skip_space(ahead)) != "<":  # every header begins with it
        source.push_back("".join(ahead))
        return ""
    header = yield from source.consume_marker(_headers)
    while header and source.is_empty and not source.final:
        yield
    following = source.text[source.position : source.position + 1]
    if not header or (header[-1] != ">" and following not in ("", "\n", "\r", " ", "<")):
        source.push_back("".join(ahead) + header)
        return ""
    ahead.append(header)
    yield from source.skip_space(ahead)
    return "".join(ahead)
