"""Emit a call's arguments while the model writes them, as fragments of one JSON object.

Emitted text cannot be withdrawn. Therefore, streaming begins only once the body parser has recognized the JSON and the
tool. A fragment is a complete member or part of a string, and nothing later in the call can change it. All other text
is buffered until the call ends.
"""

from __future__ import annotations

import json
import re

from adapter.core.events import Json, JsonObject
from adapter.core.json.strict import decode_strict, is_encodable
from adapter.parsing.format import BodySource
from adapter.tools.coercion import has_schema_type
from adapter.tools.decoded_json_calls import ABOUT_KEYS, NAME_KEYS, Normalizer
from adapter.tools.literal_backslashes import MAY_BE_LITERAL
from adapter.tools.tool import Tool

WAIT_LIMIT = 1000
"""Maximum number of characters to buffer for the start of a call, a key, or a value other than a string."""

_PROBE = "C:\n"
"""A string that normalization leaves unchanged only if a parameter accepts any string."""

_ABOUT = rf"(?:\"(?:{'|'.join(ABOUT_KEYS)})\"\s*:[^,{{]*+,\s*)?"
_HEAD = re.compile(
    rf"\s*+\[?\s*+\{{\s*+{_ABOUT}\"(?:{'|'.join(NAME_KEYS)})\"\s*:\s*\"(?P<name>[^\"\\]+)\"\s*,"
    r"\s*\"(?P<key>[^\"\\]+)\"\s*:\s*\{"
)
_BRACE = re.compile(r"\s*\{")
_VALID = (
    r'[^"\\\x00-\x1f\ud800-\udfff]|\\["\\/bfnrt]|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}'
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_MEMBER = re.compile(rf'\s*+(?P<comma>,?)\s*+(?P<key>"(?:{_VALID})*")\s*:\s*')
_STRING_TEXT = re.compile(rf"(?:(?!\\[bf]|\\\\(?:\"|\Z)|{MAY_BE_LITERAL})(?:{_VALID}|[\n\t]))+")
r"""Matches text inside a string that no repair changes. Excluded are escapes that may be meant literally, as in
``\frac`` and ``\theta``, and a backslash before a quote, because the quote may have been escaped twice."""
_RAW = str.maketrans({"\n": "\\n", "\t": "\\t"})
_STRING_ENDS = re.compile(r'(\\\\)?"\s*([,}])')
_BEGINS_STRING = re.compile(rf'"(?:{_VALID}|[\n\t])')
_VALUE_ENDS = re.compile(r"\s*[,}]")


class ArgumentStream:
    """Streams the arguments of one call as JSON. ``name`` is the tool's name, or None until the arguments have begun.
    ``start`` is the offset, in the model's text, of the first character that is passed to `feed`."""

    def __init__(self, source: BodySource, normalize: Normalizer, start: int) -> None:
        self._source, self._normalize, self._start = source, normalize, start
        self.name: str | None = None
        self._tool: Tool | None = None
        self._text = ""  # text not emitted yet
        self._emitted: JsonObject = {}  # members emitted completely
        self._postponed: set[str] = set()  # keys whose members are emitted at the end
        self._open: tuple[str, list[str]] | None = None  # key and emitted pieces of the string being streamed
        self._has_stopped = False

    def feed(self, text: str) -> str:
        """Add ``text`` to the call, and return the JSON that can now be emitted."""
        if self._has_stopped:
            return ""
        self._text += text
        fragments: list[str] = []
        if self.name is None:
            self._find_start()
        while self.name is not None and not self._has_stopped:
            fragment = self._consume_string_text() if self._open else self._consume_next_member()
            if fragment is None:
                break
            fragments.append(fragment)
        return "".join(fragments)

    def finish(self, arguments: JsonObject) -> str | None:
        """Return the rest of the JSON object, so that it has all ``arguments`` of the final call. Return None if they
        contradict what was already emitted."""
        if any(key not in arguments or arguments[key] != value for key, value in self._emitted.items()):
            return None
        pieces = [] if self._emitted or self._open else ["{"]
        count = len(self._emitted)
        if self._open is not None:
            key, parts = self._open
            emitted, value = json.loads(f'"{"".join(parts)}"'), arguments.get(key)
            if not isinstance(value, str) or not value.startswith(emitted):
                return None
            pieces.append(_encode_json(value[len(emitted) :])[1:])
            count += 1
        for key, value in arguments.items():
            if key not in self._emitted and (self._open is None or key != self._open[0]):
                pieces.append(f"{', ' if count else ''}{_encode_json(key)}: {_encode_json(value)}")
                count += 1
        return "".join((*pieces, "}"))

    def _find_start(self) -> None:
        """Find the call's name and the beginning of its arguments, and set ``name``."""
        json_call = self._source.json_call
        if json_call is None:
            self._has_stopped = len(self._text) > WAIT_LIMIT
            return
        start = json_call.start - self._start
        match = (_BRACE if json_call.name else _HEAD).match(self._text, start)
        if match is None:
            self._has_stopped = len(self._text) - start > WAIT_LIMIT
            return
        name = json_call.name or match["name"].strip()
        self._tool = self._source.tools.match(name)
        is_known = self._tool is not None or not self._source.tools
        if not is_known or (json_call.name is None and match["key"] != json_call.arguments_key):
            self._has_stopped = True
            return
        self.name = self._tool.name if self._tool is not None else name
        self._text = self._text[match.end() :]

    def _consume_next_member(self) -> str | None:
        """Consume and return the next member, or only its key and opening quote if the value is a string to be
        streamed. Return "" if the member is postponed to the end of the call, and None if more text is needed."""
        match = _MEMBER.match(self._text)
        if match is None or match.end() >= len(self._text):
            is_other = re.match(r"\s*+[^\s,\"]", self._text) is not None  # the end of the object, or not a member
            self._has_stopped = is_other or len(self._text) > WAIT_LIMIT
            return None
        key = json.loads(match["key"])
        if (not match["comma"]) == bool(self._emitted or self._postponed) or key in self._emitted:
            self._has_stopped = True
            return None
        lead = f"{', ' if self._emitted else '{'}{_encode_json(key)}: "
        if self._is_verbatim(key) and _BEGINS_STRING.match(self._text, match.end()):
            self._text = self._text[match.end() + 1 :]
            self._open = (key, [])
            return f'{lead}"'
        value = decode_strict(self._text, match.end())
        if value is None or not _VALUE_ENDS.match(self._text, value.end):  # `0` may become `0.5`
            self._has_stopped = len(self._text) > WAIT_LIMIT
            return None
        is_whole = is_encodable(self._text[: value.end])  # half of a surrogate pair is replaced at the end
        self._text = self._text[value.end :]
        member = self._consume_final_member(key, value.value) if is_whole else None
        if member is None:
            self._postponed.add(key)
            return ""
        self._emitted.update(member)
        return lead + _encode_json(member[key])

    def _consume_final_member(self, key: str, value: Json) -> JsonObject | None:
        """Return the argument ``key`` as the final call will have it, as an object with one member. Return None if
        later arguments may change it, such as an alias that fills an empty parameter."""
        assert self.name is not None
        if self._tool is not None and (value in (None, "") or key not in self._tool.properties):
            return None
        _, member, _ = self._normalize(self.name, {key: value})
        return member if list(member) == [key] else None

    def _is_verbatim(self, key: str) -> bool:
        """Return whether the argument ``key`` is a string that the final call contains unchanged."""
        if self._tool is None:
            return True
        schema = self._tool.properties.get(key)
        if schema is None or not has_schema_type(_PROBE, schema):
            return False
        return self._normalize(self._tool.name, {key: _PROBE})[1] == {key: _PROBE}

    def _consume_string_text(self) -> str | None:
        """Consume and return the next part of the open string or its closing quote, or None if more text is needed."""
        assert self._open is not None
        key, parts = self._open
        match = _STRING_TEXT.match(self._text)
        if match is not None:
            self._text = self._text[match.end() :]
            parts.append(match.group().translate(_RAW))
            return parts[-1]
        ends = _STRING_ENDS.match(self._text)
        if ends is None:
            self._has_stopped = len(self._text) > WAIT_LIMIT
            return None
        self._text = self._text[ends.start(2) :]
        last = ends[1] or ""
        self._emitted[key] = json.loads(f'"{"".join(parts)}{last}"')
        self._open = None
        return f'{last}"'


def _encode_json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)
