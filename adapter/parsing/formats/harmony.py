"""Harmony: messages with headers that name a channel and a recipient, as gpt-oss writes them.

Format: docs/format.md and src/encoding.rs of openai/harmony, and the chat template of openai/gpt-oss-20b. The prompt
ends with ``<|start|>assistant``, so the output begins inside a header::

    message   = "<|start|>" role header "<|message|>" text ("<|end|>" | "<|call|>" | "<|return|>")
    header    = (" to=" recipient | "<|channel|>" channel | "<|constrain|>" type | " " type)*
    channel   = "analysis" (reasoning) | "commentary" | "final" (both content)
    recipient = "functions." NAME (the text is then the arguments as JSON)

The recipient follows the role or the channel, in any channel, and makes the message a call. A server strips the token
at which the model stopped, so a complete JSON value needs no closing token. The tokenizer of LLM-jp 4.1 writes a space
after each token. `muse_glimmer` shares the headers, but its calls are elements, and ``to=self`` begins reasoning.
"""

from adapter.parsing.bodies import harmony_messages as messages
from adapter.parsing.bodies.harmony_messages import ASSISTANT, CALL, CHANNEL, CONSTRAIN, END, MESSAGE, RETURN, START
from adapter.parsing.call_encoders import build_calls_encoder, build_result_encoder, encode_json_arguments
from adapter.parsing.format import Format

FORMAT = Format(
    name="harmony",
    aliases=("openai", "gpt_oss", "gptoss", "llm_jp_harmony"),
    openers=messages.OPENERS,
    body_variants=frozenset({messages.HEADER_WORDS}),
    read_header=messages.read_rest_of_header,
    read_stripped_start=messages.read_without_start,
    encode_calls=build_calls_encoder(
        encode_json_arguments,
        f"{ASSISTANT} to=functions.{{name}}{CHANNEL}commentary {CONSTRAIN}json{MESSAGE}",
        CALL,
    ),
    encode_result=build_result_encoder(f"{START}functions.{{name}} to=assistant{CHANNEL}commentary{MESSAGE}", END),
    reasoning={},
    end_tokens=messages.ENDS,
    other_role_markers=messages.NEXT_TURNS,
    stop_sequences=(CALL, RETURN),
    special_tokens=messages.TOKENS,
    model_patterns=(r"gpt-?oss", r"llm-jp-?4"),
    template_fingerprints=(CHANNEL,),
)
