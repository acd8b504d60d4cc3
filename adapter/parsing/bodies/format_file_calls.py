"""Parse calls by the literal text around names, keys and values, for formats described in a user's file.

::

    <call>                      [[use get_weather]]             <call><tool>get_weather</tool>
    name: get_weather           city = Oslo                     <city>Oslo</city>
    arguments:                  [[end]]                         </call>
      city: Oslo
    </call>

The arguments are YAML, or key-value pairs, or a JSON object instead of pairs that could not be parsed back. A call ends
before the next call, or at the first closing marker where the text before the marker can be parsed. A value may
therefore contain a closing marker. ``{name}`` and ``{key}`` in the literal text represent the current name and key.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from adapter.core.errors import FormatError
from adapter.core.events import Json, JsonObject
from adapter.core.json.encode import dump_json
from adapter.core.json.strict import decode_strict
from adapter.core.yaml_subset import decode_yaml
from adapter.parsing.bodies.tagged_arguments import PendingCall
from adapter.parsing.bodies.tagged_value_end import explain_uncertain_end
from adapter.parsing.format import CUT, TEXT, BodyResult, BodySource
from adapter.parsing.marker_set import get_marker_set
from adapter.parsing.stream_buffer import HEAD_LIMIT, Reader

MAX_CLOSERS = 20
"""Maximum number of closing markers that are tried as the end of a call."""
MAX_RETRIED = 20_000
"""Maximum length of a damaged call that is searched for the next call, in characters. The text is then parsed again."""

_PLAIN = re.compile(r"[^\W\d][\w ./@()-]*", re.ASCII)

DecodeBody: TypeAlias = Callable[[str, PendingCall], None]
"""A function (text, call) that adds the arguments in the text to the call. It raises FormatError for invalid text."""

SplitPairs: TypeAlias = Callable[[str], list[tuple[str, str]] | JsonObject]
"""A function that splits the text of a call's arguments into pairs: a key and the text of its value. If a JSON object
replaces the pairs, it returns the object. It raises FormatError for invalid text."""


class DescribedCall:
    """Parses ``NAME<after_name>...<closing>`` after the opening marker. An instance is a `BodyReader`.

    ``after_name`` are the texts that may follow a name. ``opening`` begins the next call. ``decode_body`` decodes the
    text between the name and ``closing``. ``needs_closing``: whether a call without its closing marker is incomplete.
    """

    def __init__(
        self,
        after_name: tuple[str, ...],
        opening: str,
        closing: str,
        decode_body: DecodeBody,
        *,
        needs_closing: bool = False,
    ) -> None:
        following = "|".join(loosen(text).replace(r"\{name\}", "(?P=name)") for text in (*after_name, closing))
        self._head = re.compile(rf"(?P<name>[^\W\d][\w.:/-]*?)(?={following})", re.IGNORECASE)
        self._next_call = re.compile(rf"^[ \t]*{re.escape(opening)}", re.MULTILINE | re.IGNORECASE)
        self._opening, self._closing, self._decode_body = opening, closing, decode_body
        self._needs_closing = needs_closing

    def __call__(self, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        yield from source.skip_space(consumed)
        match = yield from source.peek_match(self._head, HEAD_LIMIT, lambda _: True)
        if match is None:
            return source.read_cut_head(consumed) if source.at_line_start or source.was_cut else TEXT
        name = match["name"]
        consumed.append(name)
        source.position += len(name)
        return (yield from self._read_body(name, source, consumed))

    def _read_body(self, name: str, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        start, closing = len(consumed), self._closing.replace("{name}", name)
        markers, next_call = get_marker_set(closing), None
        end, first_error, open_calls, inner_calls = 0, "", 1, 0
        for _ in range(MAX_CLOSERS):
            marker = yield from source.read_until(markers, consumed)
            body = "".join(consumed[start:])
            if marker and marker.lower() == self._opening.lower():
                if open_calls == 0:
                    source.push_back(marker)
                    break
                consumed.append(marker)
                open_calls += 1
                continue
            if not marker and (self._needs_closing or source.was_cut or end):
                break
            consumed.append(marker)
            result = self._decode(name, body, closing, source, is_closed=bool(marker))
            if result.error is None or (not marker and result == CUT):
                is_mention = not (source.at_line_start or source.was_cut) and source.tools.match(name) is None
                return TEXT if result.error and is_mention else result
            if not end:
                first_error = result.error
                next_call = self._next_call.search(body) if len(body) <= MAX_RETRIED else None
                markers = get_marker_set(closing, self._opening)
                end = len(body) + len(marker) if next_call is None else next_call.start()
                inner_calls = body.lower().count(self._opening.lower())
                open_calls += inner_calls
            open_calls = max(0, open_calls - 1)
            if open_calls == 0 and inner_calls:  # closed once more than opened: a value contains calls
                end = len(body) + len(marker)
            if not marker:
                break
        if not end:
            return CUT
        text = "".join(consumed[start:])
        source.push_back(text[end:])
        consumed[start:] = [text[:end]]
        is_closed = closing.lower() in text[:end].lower()
        return BodyResult(error=first_error) if is_closed or source.at_line_start else TEXT

    def _decode(self, name: str, body: str, closing: str, source: BodySource, *, is_closed: bool) -> BodyResult:
        call = PendingCall(name, source.tools.match(name))
        sizes = range(len(closing) - 1, 2, -1) if not is_closed else ()
        cut_closing = next((closing[:size] for size in sizes if body.lower().endswith(closing[:size].lower())), "")
        try:
            self._decode_body(body[: len(body) - len(cut_closing)], call)
        except FormatError as error:
            return BodyResult(error=f"the call of {name} cannot be read: {error}")
        return call.build_result() if is_closed else call.build_unclosed_result(source)


def loosen(text: str) -> str:
    """Return a pattern for ``text`` that tolerates more whitespace after a line break. After a tag, the line break may
    be missing, or be any other whitespace."""
    *pieces, last = re.split(r"[ \t]*\r?\n\s*", text)
    breaks = (r"\s{0,20}" if piece.endswith((">", "]")) else r"[ \t]*\r?\n\s{0,20}" for piece in pieces)
    return "".join(f"{re.escape(piece)}{gap}" for piece, gap in zip(pieces, breaks, strict=True)) + re.escape(last)


# ------------------------------------------------------------------- YAML


def build_yaml_reader(middle: str) -> DecodeBody:
    """Return a decoder for YAML arguments. ``middle`` is the text between the name and the arguments."""
    label = re.compile(loosen(middle.strip()), re.IGNORECASE) if middle.strip() else None

    def decode(body: str, call: PendingCall) -> None:
        match = label.match(body.lstrip()) if label else None
        text = body.lstrip()[match.end() :] if match else body
        arguments = decode_yaml(text.strip("\r\n")) if text.strip() else None
        if arguments is None:
            arguments = {}
        if not isinstance(arguments, dict):
            raise FormatError(
                f"the arguments are {text.strip()[:60]!r}; expected lines with a key, a colon and a value"
            )
        for key, value in arguments.items():
            call.add_value(key, value)

    return decode


def encode_yaml(arguments: JsonObject, indent: int) -> str:
    """Return ``arguments`` as YAML, one line per argument. Nested values are JSON, which is valid YAML."""
    if not arguments:
        return "{}"
    return "\n".join(
        f"{' ' * indent}{_format_scalar(key)}: {_format_scalar(value)}" for key, value in arguments.items()
    )


def _format_scalar(value: Json) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and decode_yaml(value) == value == value.strip():
        return value
    return dump_json(value)


# ------------------------------------------------------------------- pairs of a key and a value


def build_pairs_splitter(before_first: str, before_key: str, opening: str, value_close: str, none: str) -> SplitPairs:
    """Return a function that splits key-value pairs.

    - ``before_first``: the text between the tool's name and the first pair.
    - ``before_key``, ``opening``, ``value_close``: the texts before the key, before the value and after the value.
    - ``none``: the text after the name of a call without arguments.
    """
    begins = re.compile(rf"\s*{loosen(before_first.strip())}", re.IGNORECASE) if before_first.strip() else None
    before, middle, after = loosen(before_key.strip()), loosen(opening.lstrip(" ")), loosen(value_close)
    key = rf"\s{{0,20}}{before}\s{{0,20}}(?P<key>[^\W\d][\w.-]{{0,200}}?)[ \t]*{middle}"
    value_end = rf"(?P<value>.*?){after}".replace(r"\{key\}", "(?P=key)")
    if not value_close.strip():
        value_end = r"(?P<value>(?:.*?[^ \t])??)[ \t]*+(?:\r?\n|\Z)"
    next_key = rf"\s{{0,20}}(?:\Z|{key.replace('?P<key>', '').replace('(?P=key)', '[^<>]{1,200}')})"
    pair = re.compile(rf"{key}{value_end}(?={next_key})", re.DOTALL | re.IGNORECASE)
    json_start = re.compile(rf"\s*(?:{before}\s*)?(?=\{{)", re.IGNORECASE)
    none = none.strip()
    expected = f"{f'{before_key.strip()!r}, ' if before_key.strip() else ''}a key and {opening!r}"

    def split(body: str) -> list[tuple[str, str]] | JsonObject:
        body = body.rstrip(" \t\r\n")  # other whitespace belongs to a value
        if body.strip() in ("", none):
            return []
        match = begins.match(body) if begins is not None else None
        position = match.end() if match else 0
        match = json_start.match(body, position)
        decoded = decode_strict(body[match.end() :]) if match else None
        if match and decoded is not None and decoded.end == len(body) - match.end() and isinstance(decoded.value, dict):
            return decoded.value
        pairs = []
        while position < len(body):
            match = pair.match(body, position)
            if match is None:
                raise FormatError(f"expected {expected}, got {body[position:].strip()[:60]!r}")
            pairs.append((match["key"], _decode_text(match["value"])))
            position = match.end()
        return pairs

    return split


def build_pairs_decoder(
    split: SplitPairs, before_key: str, opening: str, value_close: str, next_call: str, closing: str
) -> DecodeBody:
    """Return a decoder for key-value pairs. A value whose end is uncertain is an error. ``next_call`` is the text that
    begins a call, ``closing`` the text that ends it. For the other texts, see `build_pairs_splitter`."""
    before, quote = re.escape(before_key.strip()), re.escape(_find_last_word(opening)) if value_close.strip() else ""
    damaged_pair = re.compile(
        rf"^[ \t]*+{before}[ \t]*+(?P<key>\w[\w.-]*)[^\w\n]{{1,8}}{quote}", re.MULTILINE | re.IGNORECASE
    )

    def decode(body: str, call: PendingCall) -> None:
        pairs = split(body)
        if isinstance(pairs, dict):
            for key, value in pairs.items():
                call.add_value(key, value)
            return
        for key, text in pairs:
            call.add_text(key, text)
        for key, text in pairs:
            found = find_uncertain_text(text, key, opening, value_close, next_call, closing) or next(
                (match.group() for match in damaged_pair.finditer(text) if call.expects(match["key"])), ""
            )
            if found:
                call.problem = explain_uncertain_end(call.name, key, found.strip())

    return decode


def find_uncertain_text(text: str, key: str, opening: str, value_close: str, next_call: str, closing: str) -> str:
    """Return text in a value that makes the value's end uncertain, because it might begin or end a value or a call.
    Return "" if there is none.

    This is ``next_call``, unless ``closing`` follows it; unpaired punctuation from the texts around values, at the
    start or end of the value; or an unpaired ``value_close`` at the end of a line.
    """
    text, next_call, closing, opening, value_close = map(str.lower, (text, next_call, closing, opening, value_close))
    if f"\n{text}".rfind(next_call) > f"\n{text}".rfind(closing):
        return next_call
    if not value_close.strip():
        return ""
    quote, close = _find_last_word(opening), value_close.strip().replace("{key}", key.lower())
    first, last = quote[-1], close[0]
    if text.count(first) != text.count(last) and (text.startswith(first) or text.endswith(last)):
        return first if text.startswith(first) else last
    ends_line = re.search(rf"{re.escape(close)}[ \t]*$", text, re.MULTILINE)
    return (
        close if ends_line and text.count(quote, 0, ends_line.start()) < text.count(close, 0, ends_line.end()) else ""
    )


def _find_last_word(text: str) -> str:
    return text.split()[-1] if text.strip() else text


def _decode_text(text: str) -> str:
    """Decode a string in double quotes. Any other text is returned unchanged."""
    decoded = decode_strict(text) if text[:1] == '"' == text[-1:] else None
    is_string = decoded is not None and decoded.end == len(text) and isinstance(decoded.value, str)
    return str(decoded.value) if is_string and decoded is not None else text
