"""GigaChat 3: JSON in a message of the role ``function call``.

Format: the chat template of ai-sage/GigaChat3-10B-A1.8B. A message consists of a role, a token, the text and another
token. Within a turn, a call may follow an answer::

    I look.<|message_sep|>

    function call<|role_sep|>
    {"name": "get_weather", "arguments": {"city": "Oslo"}}<|message_sep|>

GigaChat 3.1 writes the token ``<|function_call|>`` in place of the role. Results are returned in a message of the role
``function result``. If a server strips the tokens, the role's name remains before the JSON. Some servers write NUL in
place of the line breaks that belong to the tokens.
"""

from __future__ import annotations

from adapter.parsing.bracket_delimited_json import UntaggedJson
from adapter.parsing.call_encoders import build_calls_encoder, build_result_encoder, encode_json_call
from adapter.parsing.format import TEXT, BodyResult, BodySource, CallOpener, Format
from adapter.parsing.marker_set import get_marker_set
from adapter.parsing.stream_buffer import Reader

ROLE, ROLE_END, MESSAGE_END = "function call", "<|role_sep|>", "<|message_sep|>"
OPEN, SHORT, RESULT, END = ROLE + ROLE_END, "<|function_call|>", "function result" + ROLE_END, "</s>"
STRIPPED = (ROLE + "{", ROLE + "\n{")
NEXT_TURNS = ("user" + ROLE_END, RESULT)

_nul = get_marker_set("\0")
_read_json = UntaggedJson("arguments", after_marker=True, ends=(MESSAGE_END, SHORT, END))
_read_bare = UntaggedJson("arguments", after_marker=False)


def read_call(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the JSON after ``function call<|role_sep|>`` or ``<|function_call|>``. If there is none, return `TEXT`."""
    yield from source.consume_marker(_nul, consumed)
    return (yield from _read_json(source, consumed))


def read_stripped(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse a call without its control token, which a server stripped. Only ``function call`` precedes the JSON. These
    words must begin a line. The marker includes the JSON's first brace."""
    if not source.at_line_start:
        return TEXT
    marker = consumed.pop()
    consumed.append(marker[:-1])
    source.push_back(marker[-1])
    return (yield from _read_bare(source, consumed)).with_repairs("misspelt-open-tag")


FORMAT = Format(
    name="gigachat3",
    aliases=("gigachat", "gigachat_v3"),
    openers=(
        CallOpener(OPEN, read_call),
        CallOpener(SHORT, read_call),
        *(CallOpener(marker, read_stripped) for marker in STRIPPED),
    ),
    encode_calls=build_calls_encoder(encode_json_call, f"{OPEN}\n", between=f"{MESSAGE_END}\n\n"),
    encode_result=build_result_encoder(f"{RESULT}\n", f"{MESSAGE_END}\n\n"),
    end_tokens=(MESSAGE_END, MESSAGE_END + "\0\0", END),
    other_role_markers=NEXT_TURNS,
    stop_sequences=(END,),
    special_tokens=(ROLE_END, MESSAGE_END, SHORT),
    model_patterns=(r"gigachat-?3(?!\.[1-9])",),
    template_fingerprints=(ROLE_END,),
)
