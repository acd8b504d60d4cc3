"""Poolside Laguna: the pairs of GLM 4.7; reasoning is opened in the prompt when it is asked for.

Format: the chat templates of poolside/Laguna-XS.2 and later, as ollama/ollama has
them (model/renderers/testdata/laguna_v8_chat_template.jinja2); the first release
(laguna_v2) puts a line to each tag, which is read too.
"""

from __future__ import annotations

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
