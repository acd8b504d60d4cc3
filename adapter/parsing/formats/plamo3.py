"""PLaMo 3: a name and JSON arguments, each between its own tokens.

Format: the parsers for pfnet's PLaMo 3 in vLLM (tool_parsers/plamo3_tool_parser.py) and SGLang::

    <|plamo:begin_tool_requests:plamo|>
    <|plamo:begin_tool_request:plamo|>
    <|plamo:begin_tool_name:plamo|>NAME<|plamo:end_tool_name:plamo|>
    <|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>{...}<|plamo:end_tool_arguments:plamo|>
    <|plamo:end_tool_request:plamo|>
    <|plamo:end_tool_requests:plamo|>

For the tokenizer, the tokens are ordinary text, so a stream may split them at any point. Some answers omit
``<|plamo:constrain|>json`` and the line breaks.
"""

from adapter.parsing.bodies.call_section import CallSection
from adapter.parsing.bodies.name_then_json import NameThenJsonReader
from adapter.parsing.call_encoders import build_calls_encoder, encode_json_arguments
from adapter.parsing.format import Format


def _build_token(name: str) -> str:
    return f"<|plamo:{name}:plamo|>"


REQUESTS, END_REQUESTS = _build_token("begin_tool_requests"), _build_token("end_tool_requests")
REQUEST, END_REQUEST = _build_token("begin_tool_request"), _build_token("end_tool_request")
NAME, END_NAME = _build_token("begin_tool_name"), _build_token("end_tool_name")
ARGUMENTS, END_ARGUMENTS, MESSAGE = (
    _build_token("begin_tool_arguments"),
    _build_token("end_tool_arguments"),
    "<|plamo:msg|>",
)
THINK, END_THINK, END = _build_token("begin_think"), _build_token("end_think"), "<|plamo:tag|>"

_section = CallSection(
    opens=(REQUESTS, REQUEST),
    closes=(END_REQUESTS, END_REQUEST),
    call_opens=(NAME,),
    read_call=NameThenJsonReader(NAME, END_ARGUMENTS, separators=(END_NAME, MESSAGE)),
)

FORMAT = Format(
    name="plamo3",
    aliases=("plamo",),
    openers=_section.openers,
    encode_calls=build_calls_encoder(
        encode_json_arguments,
        f"{REQUEST}\n{NAME}{{name}}{END_NAME}\n{ARGUMENTS}<|plamo:constrain|>json{MESSAGE}",
        f"{END_ARGUMENTS}\n{END_REQUEST}\n",
        opening=f"{REQUESTS}\n",
        closing=END_REQUESTS,
    ),
    reasoning={THINK: END_THINK},
    stray_closers=(END_REQUESTS, END_REQUEST, END_ARGUMENTS),
    end_tokens=(END,),
    stop_sequences=(END,),
    special_tokens=(REQUESTS, END_REQUESTS, REQUEST, NAME, END_NAME, ARGUMENTS, END_ARGUMENTS, THINK, END_THINK),
    model_patterns=(r"plamo-?_?3",),
    template_fingerprints=(REQUESTS, "begin_tool_requests"),
)
