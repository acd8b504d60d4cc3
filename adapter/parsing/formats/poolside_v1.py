"""Poolside Laguna: calls like GLM 4.7; reasoning is opened in the prompt if it is requested.

Format: the chat templates of poolside/Laguna-XS.2 and later releases, as in ollama/ollama
(model/renderers/testdata/laguna_v8_chat_template.jinja2). The first release (laguna_v2) writes each tag on a separate
line, which is also parsed. The model also writes calls in ``<user>``, the tag of a user's message.
"""

from dataclasses import replace

from adapter.parsing.bodies.arg_key_value import KeyValueReader
from adapter.parsing.bodies.key_value_tags import KeyValueTags
from adapter.parsing.fallback_readers import read_call_or_text
from adapter.parsing.format import TEXT, BodyResult, BodySource, CallOpener
from adapter.parsing.formats import glm47
from adapter.parsing.stream_buffer import Reader

USER = KeyValueTags(open="<user>", close="</user>")
_read_call = KeyValueReader(USER).read


def _read_user(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse a call to a known tool after ``<user>``. Any other text there is a user's message."""
    result = yield from read_call_or_text(_read_call, source, consumed)
    return result.with_fixes("misspelt-open-tag") if result.calls_known_tools(source.tools) else TEXT


FORMAT = replace(
    glm47.FORMAT,
    name="poolside_v1",
    aliases=("poolside", "laguna"),
    openers=(*glm47.FORMAT.openers, CallOpener(USER.open, _read_user)),
    starts_in_reasoning=False,
    end_tokens=("</assistant>",),
    stop_sequences=("</assistant>",),
    model_patterns=(r"laguna", r"poolside"),
    template_fingerprints=("〈|EOS|〉",),
)
