"""GLM 4.7 to 5.3: ``<arg_key>`` and ``<arg_value>`` pairs without line breaks; reasoning is opened in the prompt.

Format: chat_template.jinja of zai-org/GLM-4.7, GLM-4.7-Flash, GLM-5 and GLM-5.3::

    reasoning</think><tool_call>NAME<arg_key>KEY</arg_key><arg_value>value</arg_value></tool_call>
"""

from dataclasses import replace
from functools import partial

from adapter.parsing.bodies.key_value_tags import GLM, encode_call
from adapter.parsing.call_encoders import build_calls_encoder, build_result_encoder
from adapter.parsing.formats import glm45

FORMAT = replace(
    glm45.FORMAT,
    name="glm47",
    aliases=("glm5", "glm4_7", "glm47_moe", "glm5_3", "glm53", "glm_4_7"),
    encode_calls=build_calls_encoder(partial(encode_call, GLM)),
    encode_result=build_result_encoder("<tool_response>", "</tool_response>"),
    starts_in_reasoning=True,
    model_patterns=(r"glm-?_?4[.-]?7", r"glm-?_?[5-9]"),
    template_fingerprints=("<arg_key>{arg-key-1}</arg_key><arg_value>",),
)
