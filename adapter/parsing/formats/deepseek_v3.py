"""DeepSeek V3 and R1: fenced JSON arguments between control tokens.

Format: tokenizer_config.json (chat_template) of deepseek-ai/DeepSeek-V3-0324 and
DeepSeek-R1-0528::

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME
    ```json
    {...}
    ```<｜tool▁call▁end｜><｜tool▁calls▁end｜>
"""

from adapter.parsing.bodies import deepseek_tokens as tokens
from adapter.parsing.call_encoders import build_calls_encoder, build_result_encoder, encode_json_arguments
from adapter.parsing.format import Format

END_OF_SENTENCE = "<｜end▁of▁sentence｜>"

FORMAT = Format(
    name="deepseek_v3",
    aliases=("deepseek", "deepseek3", "deepseek_r1", "deepseekv3", "cogito"),
    openers=tokens.SECTION.openers,
    body_variants=frozenset({tokens.TYPED_HEADS}),
    encode_calls=build_calls_encoder(
        encode_json_arguments,
        f"{tokens.CALL_BEGIN[0]}function{tokens.SEPARATOR[0]}{{name}}\n```json\n",
        f"\n```{tokens.CALL_END[0]}",
        between="\n",
        opening=tokens.CALLS_BEGIN[0],
        closing=tokens.CALLS_END[0],
    ),
    encode_result=build_result_encoder("<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"),
    result_markers=("<｜tool▁outputs▁begin｜>", "<｜tool▁output▁begin｜>"),
    stray_closers=tokens.STRAYS,
    end_tokens=(END_OF_SENTENCE,),
    stop_sequences=(END_OF_SENTENCE,),
    special_tokens=(
        tokens.CALLS_BEGIN[0],
        tokens.CALLS_END[0],
        tokens.CALL_BEGIN[0],
        tokens.CALL_END[0],
        tokens.SEPARATOR[0],
        "<think>",
        "</think>",
    ),
    model_patterns=(r"cogito.*(?:671b|2\.1)", r"deepseek.*r1", r"deepseek-?_?(?:chat-?)?v3(?![.p_-]?[1-9](?!\d))"),
    template_fingerprints=("+ '\\n' + '```json'", "<｜tool▁call▁begin｜>' + tool['type'] + '<｜tool▁sep｜>"),
)
