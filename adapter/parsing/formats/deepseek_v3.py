"""DeepSeek V3 and R1: fenced JSON arguments between control tokens.

Format: tokenizer_config.json (chat_template) of deepseek-ai/DeepSeek-V3-0324 and
DeepSeek-R1-0528::

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME
    ```json
    {...}
    ```<｜tool▁call▁end｜><｜tool▁calls▁end｜>
"""

from __future__ import annotations

from adapter.parsing.bodies.deepseek_tokens import (
    CALL_BEGIN,
    CALL_END,
    CALLS_BEGIN,
    CALLS_END,
    SECTION,
    SEPARATOR,
    STRAYS,
)
from adapter.parsing.encoding import calls_encoder, json_arguments, result_encoder
from adapter.parsing.format import Format

END_OF_SENTENCE = "<｜end▁of▁sentence｜>"


FORMAT = Format(
    name="deepseek_v3",
    aliases=("deepseek", "deepseek3", "deepseek_r1", "deepseekv3", "cogito"),
    openers=SECTION.openers,
    encode_calls=calls_encoder(
        json_arguments,
        f"{CALL_BEGIN[0]}function{SEPARATOR[0]}{{name}}\n```json\n",
        f"\n```{CALL_END[0]}",
        between="\n",
        opening=CALLS_BEGIN[0],
        closing=CALLS_END[0],
    ),
    encode_result=result_encoder("<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"),
    result_markers=("<｜tool▁outputs▁begin｜>", "<｜tool▁output▁begin｜>"),
    stray_closers=STRAYS,
    end_tokens=(END_OF_SENTENCE,),
    stop_sequences=(END_OF_SENTENCE,),
    special_tokens=(CALLS_BEGIN[0], CALLS_END[0], CALL_BEGIN[0], CALL_END[0], SEPARATOR[0], "<think>", "</think>"),
    model_patterns=(
        r"cogito.*(?:671b|2\.1)",
        r"deepseek.*r1",
        r"deepseek-?_?(?:chat-?)?v3(?![.p_-]?[1-9](?!\d))",
    ),
    template_fingerprints=("+ '\\n' + '```json'", "<｜tool▁call▁begin｜>' + tool['type'] + '<｜tool▁sep｜>"),
)
