"""InternLM: JSON between ``<|action_start|><|plugin|>`` and ``<|action_end|>``.

Format: the chat templates of internlm2.5 and internlm3, and InternLM's "Plugin and function calling" guide. The key of
the arguments is ``parameters``, or ``arguments`` in the first InternLM2, whose tokenizer writes a space between the two
tokens. Either token may be missing. Results are returned under the ``environment`` role.
"""

from adapter.parsing.call_encoders import build_calls_encoder, encode_json_call_with_parameters
from adapter.parsing.format import CallOpener, Format
from adapter.parsing.tagged_json import TaggedJson, require_json

OPEN, CLOSE = "<|action_start|><|plugin|>", "<|action_end|>"
SPACED = "<|action_start|> <|plugin|>"
HALVES = ("<|action_start|>", "<|plugin|>")

_read_json = require_json(TaggedJson(OPEN, CLOSE, "parameters"))

FORMAT = Format(
    name="internlm",
    aliases=("internlm2", "internlm3", "interns1", "intern_s1"),
    openers=tuple(CallOpener(opening, _read_json) for opening in (OPEN, SPACED, *HALVES)),
    encode_calls=build_calls_encoder(encode_json_call_with_parameters, f"{OPEN}\n", CLOSE, between="\n"),
    stray_closers=(CLOSE,),
    stop_sequences=("<|im_end|>",),
    special_tokens=(*HALVES, CLOSE),
    model_patterns=(r"intern(?:lm|-?_?s1)",),
    template_fingerprints=HALVES,
)
