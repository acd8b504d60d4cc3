"""Reads calls written as a name and pairs of keys and values, after the call's opening tag has been taken.

::

    NAME                                     NAME<arg_key>KEY</arg_key><arg_value>value</arg_value>
    <arg_key>KEY</arg_key>
    <arg_value>value, as it is, over any number of lines</arg_value>

Families spell the tags differently, and some put a marker after the name or
leave out the tag that closes a key (`KeyValueTags`). Values are not escaped;
`bare_value` finds their ends. A name alone is a call without arguments; a name
before ``{`` has its arguments as one JSON object.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from adapter.core.events import Json, JsonObject
from adapter.parsing.bodies.argument_collection import BodyError, PendingCall, encode_unescaped, reads_as_null
from adapter.parsing.bodies.raw_value import RawValue, without_broken_close, without_line_end
from adapter.parsing.format import CUT_OFF, TEXT, BodyResult, ReadContext
from adapter.parsing.marker_set import MarkerSet
from adapter.parsing.stream_buffer import Reader, StreamBuffer, read_until, skip_space, skip_to, take_marker, take_until
from adapter.parsing.tagged_json import TaggedJson

NAME_LIMIT = 200
"""Characters of a name or key; more is prose with a stray marker in it."""

_end_of_thought = MarkerSet("</think>")
_NAME = re.compile(r"[^\s<>{}\[\]()\"'`|,;]{1,200}")


@dataclass(frozen=True, slots=True)
class KeyValueTags:
    """How one family spells the tags of a call and its pairs.

    ``separator``: what may stand between the name and the pairs. ``key_close``: "" where the
    value's opening tag ends the key. ``type``: the tags around the value's type, which may stand
    before the value. ``section_close``: what may follow the last call.
    """

    open: str = "<tool_call>"
    close: str = "</tool_call>"
    key_open: str = "<arg_key>"
    key_close: str = "</arg_key>"
    value_open: str = "<arg_value>"
    value_close: str = "</arg_value>"
    separator: str = ""
    section_close: str = ""
    type: tuple[str, str] | None = None

    @property
    def all(self) -> tuple[str, ...]:
        pairs = (self.key_open, self.key_close, self.value_open, self.value_close)
        return tuple(tag for tag in (*pairs, self.open, self.close, self.separator) if tag)


GLM = KeyValueTags(separator="<tool_sep>", section_close="</tool_calls>")
"""The tags of GLM and of all who took them over; Hunyuan 3 has the separator and the section."""


class KeyValueReader:
    """Reads a call after its opening tag. ``own``: the formats that write the tags so, beside those whose
    ``tool_call_body`` is pairs where the tags are those of the shared envelope."""

    def __init__(self, tags: KeyValueTags, own: tuple[str, ...] = ()) -> None:
        self.tags, self.own = tags, own
        kinds = {
            tags.key_open: "key",
            tags.key_close: "key close",
            tags.value_open: "value",
            tags.value_close: "value close",
            tags.open: "call",
            tags.close: "call close",
            tags.section_close: "section close",
        }
        self._kind = {"": ""} | {tag.lower(): kind for tag, kind in kinds.items() if tag}
        self._tags = MarkerSet(*filter(None, self._kind))
        self._separator = MarkerSet(tags.separator) if tags.separator else None
        self._key_end = tags.key_close or tags.value_open
        self._after_key = MarkerSet(tags.value_open, *filter(None, [tags.key_close]), *(tags.type or ())[:1])
        self._value = RawValue(
            closes=[tags.value_close],
            next_opens=[tags.key_open],
            call_opens=[tags.open],
            call_closes=[tags.close],
            outer_closes=[tags.section_close] if tags.section_close else [],
        )
        self._empty_value = f"{tags.value_open[:-1]}/>"
        self._no_value = MarkerSet(tags.key_open, tags.close)
        self._read_json = TaggedJson(tags.open, tags.close)
        self._key_before_close = re.compile(rf"\s*([^<>\n]{{1,{NAME_LIMIT}}}){re.escape(self._key_end)}", re.IGNORECASE)

    def _is_own(self, context: ReadContext) -> bool:
        return context.expected_format in self.own or (self.tags is GLM and context.tool_call_body == "pairs")

    def __call__(self, source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult | None]:
        """The call; None, with nothing taken, when no name in this format's way stands there."""
        ahead: list[str] = []
        call = yield from self._take_name(source, ahead, context)
        if call is None:
            source.push_back("".join(ahead))
            return None
        span.extend(ahead)
        if source.text.startswith("{", source.position):
            return (yield from TaggedJson(self.tags.open, self.tags.close, name=call.name)(source, span, context))
        try:
            return (yield from self._read_pairs(source, span, call))
        except BodyError as error:
            return error.result

    def read(self, source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
        """The call, as JSON too; anything else is text. A `BodyReader`, for tags that no other family shares."""
        char = yield from skip_space(source, span)
        if not char:
            return BodyResult(error=CUT_OFF) if context.at_line_start or source.was_cut else TEXT
        if char in "{[":
            return (yield from self._read_json(source, span, context))
        reading = yield from self(source, span, context)
        return TEXT if reading is None else reading

    def _take_name(self, source: StreamBuffer, ahead: list[str], context: ReadContext) -> Reader[PendingCall | None]:
        """Take a name if what follows it can: a tag of a pair, JSON, or the call's end."""
        name = yield from _take_word(source)
        ahead.append(name)
        char = yield from skip_space(source, ahead)
        if not name:
            return None
        call = PendingCall(name, context.tools.match(name))
        is_meant = call.tool is not None or context.at_line_start or self._is_own(context)
        stray = yield from take_marker(source, _end_of_thought)
        if stray:
            ahead.append(stray)
            call.fix("text-in-tag")
            char = yield from skip_space(source, ahead)
        if self._separator is not None:
            separator = yield from take_marker(source, self._separator)
            if separator:
                ahead.append(separator)
                char = yield from skip_space(source, ahead)
        if char == "{":
            return call if is_meant else None
        tag = yield from take_marker(source, self._tags)
        source.push_back(tag)
        match self._kind[tag.lower()]:
            case "key":
                return call
            case "call close" | "call":
                return call if is_meant else None
            case "key close":
                return self._unglued(call, ahead, source, context)
            case "value close" if call.tool is not None:
                return call  # a stray closer after the name, which is passed over with the pairs
        rest = source.text[source.position :].lower()
        is_cut = source.final and any(tag.startswith(rest) for tag in (self.tags.key_open, self.tags.separator))
        if not char or is_cut:
            return call if context.at_line_start or self._is_own(context) else None
        key = yield from self._key_ahead(source)
        return call if call.has_parameter(key) else None

    def _unglued(
        self, call: PendingCall, ahead: list[str], source: StreamBuffer, context: ReadContext
    ) -> PendingCall | None:
        """The call whose name a key was glued to, its opening tag missing; the key is given back."""
        for tool in sorted(context.tools.values(), key=lambda tool: -len(tool.name)):
            key = call.name.removeprefix(tool.name)
            if key != call.name and key in tool.properties:
                source.push_back(key + "".join(ahead[1:]))
                ahead[:] = [tool.name]
                return PendingCall(tool.name, tool)
        return None

    def _key_ahead(self, source: StreamBuffer) -> Reader[str]:
        """The key that stands here with its closing tag, nothing taken; "" when none does."""
        while True:
            found = self._key_before_close.match(source.text, source.position)
            if found is not None:
                return found.group(1).strip()
            if source.final or len(source.text) - source.position > NAME_LIMIT + len(self._key_end):
                return ""
            yield

    def _read_pairs(self, source: StreamBuffer, span: list[str], call: PendingCall) -> Reader[BodyResult]:
        while True:
            char = yield from skip_space(source, span)
            tag = yield from take_marker(source, self._tags)
            match self._kind[tag.lower()]:
                case "key":
                    span.append(tag)
                    yield from self._read_pair(source, span, call)
                case "call close":
                    span.append(tag)
                    return call.result()
                case "section close" if not source.was_cut:
                    source.push_back(tag)
                    return call.result("missing-close-tag")
                case "call" if not (yield from self._key_ahead(source)):
                    is_cut = source.was_cut and self._tags.search(source.text, source.position) is None
                    source.push_back(tag)  # a key's tag misspelt, or the next call: where the text is cut, who knows
                    return BodyResult(error=CUT_OFF) if is_cut else call.result("missing-close-tag")
                case "call":
                    span.append(tag)
                    call.fix("misspelt-inner-tag")
                    yield from self._read_pair(source, span, call)
                case "" if (yield from self._key_ahead(source)):
                    call.fix("missing-inner-tag")
                    yield from self._read_pair(source, span, call)
                case _ if not char:
                    return BodyResult(error=CUT_OFF)
                case _:
                    span.append(tag)
                    yield from skip_to(source, self._tags, span)
                    call.fix("text-in-tag")

    def _read_pair(self, source: StreamBuffer, span: list[str], call: PendingCall) -> Reader[None]:
        """Read a pair after the key's opening tag."""
        while True:
            written: list[str] = []
            tag = yield from read_until(source, self._tags, written)
            span.extend([*written, tag])
            if self._kind[tag.lower()] != "key" or "".join(written).strip():
                break
            call.fix("text-in-tag")  # the key's tag written twice
        key, type = "".join(written).strip(), ""
        match self._kind[tag.lower()]:
            case "key close":
                opened, type = yield from self._read_value_open(source, span, call)
                if not opened and (yield from self._is_at(source, self._no_value)):
                    call.fix("key-without-value")
                    return
            case "value":
                if self.tags.key_close:
                    call.fix("missing-inner-tag")
            case "":
                raise BodyError
            case _:
                raise BodyError(
                    f"after {self.tags.key_open} in a call of {call.name!r} no key stands: expected {self._key_end}"
                )
        if not key:
            raise BodyError(f"an argument of {call.name!r} has no name: {self.tags.key_open} is empty")
        call.keys.add(key)
        value: list[str] = []

        def may_begin(source: StreamBuffer, _tag: str) -> Reader[bool]:
            """Only the tool's own keys, not yet given, can begin a pair where the value before has no end."""
            return call.expects((yield from self._key_ahead(source)))

        closing = yield from self._value.take(source, value, may_begin)
        span.extend(value)
        if closing is None:
            raise BodyError
        span.append(closing)
        text = "".join(value)
        if closing:
            call.check_end(key, text, (self.tags.value_open,), (self.tags.value_close,))
        elif text.strip().lower() in ("", self._empty_value):
            call.fix("key-without-value")
            return
        else:
            call.fix("missing-inner-tag")
            text = without_line_end(without_broken_close(text, key, (self.tags.value_close,)))
        call.add_text(key, text, {"type": type} if type else None)

    def _read_value_open(self, source: StreamBuffer, span: list[str], call: PendingCall) -> Reader[tuple[bool, str]]:
        """Take the value's opening tag, with doubled tags and its type before it: whether it is there, and the type.

        Where the opening tag is missing the value begins at once.
        """
        type = ""
        while True:
            gap: list[str] = []
            char = yield from skip_space(source, gap)
            tag = yield from take_marker(source, self._after_key)
            if not tag:
                if char:
                    call.fix("missing-inner-tag")
                source.push_back("".join(gap))
                return False, type
            span.extend([*gap, tag])
            if tag.lower() == self.tags.value_open:
                return True, type
            if self.tags.type and tag.lower() == self.tags.type[0]:
                type = (yield from take_until(source, self.tags.type[1], NAME_LIMIT, span)) or ""
                continue
            call.fix("text-in-tag")

    def _is_at(self, source: StreamBuffer, markers: MarkerSet) -> Reader[bool]:
        """Whether one of ``markers`` stands here, white space aside. Takes nothing."""
        gap: list[str] = []
        yield from skip_space(source, gap)
        gap.append((yield from take_marker(source, markers)))
        source.push_back("".join(gap))
        return gap[-1] != ""


def _take_word(source: StreamBuffer) -> Reader[str]:
    while True:
        found = _NAME.match(source.text, source.position)
        word = found.group() if found else ""
        if source.final or len(word) >= NAME_LIMIT or source.position + len(word) < len(source.text):
            source.position += len(word)
            return word
        yield


def encode_call(
    tags: KeyValueTags, name: str, arguments: JsonObject, *, gap: str = "", key_end: str = "", value_end: str = ""
) -> str:
    """A call: ``gap`` follows its name, ``key_end`` and ``value_end`` the tags that close a key and a value.

    One JSON object stands in place of the pairs where a pair would not be read back, since nothing can be escaped.
    """
    if any(_is_ambiguous(tags, key, value) for key, value in arguments.items()):
        body = json.dumps(arguments, ensure_ascii=False) + value_end
    else:
        body = "".join(
            f"{tags.key_open}{key}{tags.key_close}{key_end}"
            f"{tags.value_open}{encode_unescaped(value)}{tags.value_close}{value_end}"
            for key, value in arguments.items()
        )
    return f"{tags.open}{name}{gap}{body}{tags.close}"


def _is_ambiguous(tags: KeyValueTags, key: str, value: Json) -> bool:
    """Whether a pair would not be read back."""
    text = encode_unescaped(value).lower()
    return (
        any(tag in text for tag in tags.all)
        or reads_as_null(value)
        or any(char in key for char in "<>\n")
        or key != key.strip()
        or not key
    )
