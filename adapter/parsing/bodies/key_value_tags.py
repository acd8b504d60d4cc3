"""The tags that model families write around keys and values (`KeyValueTags`), and an encoder for such calls.

`arg_key_value` parses these calls.
"""

from __future__ import annotations

from dataclasses import dataclass

from adapter.core.events import Json, JsonObject
from adapter.core.json.encode import dump_json
from adapter.parsing.bodies.tagged_arguments import encode_unescaped, is_ambiguous_pair, reads_as_null


@dataclass(frozen=True, slots=True)
class KeyValueTags:
    """The tags that a model family writes around a call, its keys and its values."""

    open: str = "<tool_call>"
    close: str = "</tool_call>"
    key_open: str = "<arg_key>"
    key_close: str = "</arg_key>"
    """The closing tag of a key, or "" if the value's opening tag ends the key."""
    value_open: str = "<arg_value>"
    value_close: str = "</arg_value>"
    separator: str = ""
    """A marker that may come between the name and the pairs."""
    section_close: str = ""
    """A tag that may follow the last call."""
    type: tuple[str, str] | None = None
    """The tags around the name of a value's type, which may precede the value, or None."""

    @classmethod
    def with_affixes(
        cls, prefix: str = "", suffix: str = "", *, section_close: str, separator: str = "", type: str = ""
    ) -> KeyValueTags:
        """Return GLM's tags with ``prefix`` and ``suffix`` around each word. ``type`` is the word in the tags around
        the type of a value, or ""."""

        def build_pair(word: str) -> tuple[str, str]:
            return f"<{prefix}{word}{suffix}>", f"</{prefix}{word}{suffix}>"

        (call, key, value), type_tags = (
            map(build_pair, ("tool_call", "arg_key", "arg_value")),
            build_pair(type) if type else None,
        )
        return cls(*call, *key, *value, separator, section_close, type_tags)

    @property
    def all(self) -> tuple[str, ...]:
        pairs = (self.key_open, self.key_close, self.value_open, self.value_close)
        return tuple(tag for tag in (*pairs, self.open, self.close, self.separator) if tag)


GLM = KeyValueTags(separator="<tool_sep>", section_close="</tool_calls>")
"""The tags of GLM and of the families that adopted them. Hunyuan 3 also writes the separator and the section."""

TELECHAT = KeyValueTags(
    key_open="<param_key>", key_close="</param_key>", value_open="<param_value>", value_close="</param_value>"
)
"""The tags of TeleChat 4. The tags around a call are GLM's."""


def encode_call(
    tags: KeyValueTags, name: str, arguments: JsonObject, *, gap: str = "", key_end: str = "", value_end: str = ""
) -> str:
    """Encode a call. ``gap`` follows the name, ``key_end`` a key's closing tag, and ``value_end`` a value's.

    Values cannot be escaped. If a pair would be parsed back differently, all arguments are written as one JSON object.
    """
    if any(_is_ambiguous(tags, key, value) for key, value in arguments.items()):
        body = dump_json(arguments) + value_end
    else:
        body = "".join(
            f"{tags.key_open}{key}{tags.key_close}{key_end}"
            f"{tags.value_open}{encode_unescaped(value)}{tags.value_close}{value_end}"
            for key, value in arguments.items()
        )
    return f"{tags.open}{name}{gap}{body}{tags.close}"


def _is_ambiguous(tags: KeyValueTags, key: str, value: Json) -> bool:
    text = encode_unescaped(value)
    is_doubled = text.lstrip().lower().startswith(tags.value_open[:-1].lower())  # a broken tag, when parsed
    return is_doubled or reads_as_null(value) or is_ambiguous_pair(key, text, tags.all, "<>\n")
