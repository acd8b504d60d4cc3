"""Poolside Laguna: calls like GLM 4.7; reasoning is opened in the prompt if it is requested.

Format: the chat templates of poolside/Laguna-XS.2 and later releases, as in ollama/ollama
(model/renderers/testdata/laguna_v8_chat_template.jinja2). The first release (laguna_v2) writes each tag on a separate
line, which is also parsed.
"""

from dataclasses import replace

from adapter.parsing.formats import glm47

FORMAT = replace(
    glm47.FORMAT,
    name="poolside_v1",
    aliases=("poolside", "laguna"),
    starts_in_reasoning=False,
    end_tokens=("</assistant>",),
    stop_sequences=("</assistant>",),
    model_patterns=(r"laguna", r"poolside"),
    template_fingerprints=("〈|EOS|〉",),
)
