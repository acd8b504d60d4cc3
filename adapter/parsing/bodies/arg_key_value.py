"""Parse calls written as a name and key-value pairs, after the call's opening tag.

::

    NAME                                     NAME<arg_key>KEY</arg_key><arg_value>value</arg_value>
    <arg_key>KEY</arg_key>
    <arg_value>value, unescaped, over any number of lines</arg_value>

Model families spell the tags differently. Some write a marker after the name, or no tag that closes a key
(`KeyValueTags`). `tagged_value_end` finds the ends of values, which are not escaped. A name alone is a call without
arguments. If ``{`` follows the name, the arguments are one JSON object.
"""

from __future__ import annotations

import re
from functools import partial

from adapter.parsing.bodies.key_value_tags import GLM, KeyValueTags
from adapter.parsing.bodies.tagged_arguments import (
    BodyError,
    PendingCall,
    read_value,
)
from adapter.parsing.bodies.tagged_value_end import RawValue, remove_broken_close, strip_line_break
from adapter.parsing.fallback_readers import read_call_or_text
from adapter.parsing.format import CUT, TEXT, BodyResult, BodySource
from adapter.parsing.marker_set import MarkerSet
from adapter.parsing.stream_buffer import NAME_LIMIT, Reader, StreamBuffer
from adapter.parsing.tagged_json import TaggedJson
from adapter.tools.tool_set import ToolSet

_end_of_thought = MarkerSet("</think>")
_MAY_BE_UNOPENED = re.compile(r"\s*+([\w.:-]*+)\s*+(<\S*+)?")
_LINE_END = re.compile(r"[ \t]*\r?\n")
_NAME = re.compile(r"[^\s<>{}\[\]()\"'`|,;]{1,200}")


class KeyValueReader:
    """Parses a call with key-value pairs, after its opening tag.

    ``own`` are the names of the formats that write ``tags``. Every format whose ``tool_call_body`` is ``"pairs"`` also
    writes GLM's tags.
    """

    def __init__(self, tags: KeyValueTags, own: tuple[str, ...] = ()) -> None:
        self.tags, self.own = tags, own
        kinds = {
            remove_bracket(tags.key_open): "broken key",
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
        self._ends = MarkerSet(tags.close)
        self._separator = MarkerSet(tags.separator) if tags.separator else None
        self._key_end = tags.key_close or tags.value_open
        self._broken_value_opens = [tags.value_open[at:].lower() for at in range(1, len(tags.value_open) - 1)]
        self._key_closes = (tags.key_close,) if tags.key_close else ()
        self._after_key = MarkerSet(
            tags.value_open, *self._broken_value_opens, *filter(None, [tags.key_close]), *(tags.type or ())[:1]
        )
        self._value = RawValue(
            closes=[tags.value_close],
            next_opens=[*dict.fromkeys([tags.key_open, remove_bracket(tags.key_open)])],
            call_opens=[tags.open],
            call_closes=[tags.close],
            outer_closes=[tags.section_close] if tags.section_close else [],
        )
        self._empty_value = f"{tags.value_open[:-1]}/>".lower()
        self._no_value = MarkerSet(tags.key_open, tags.close)
        self._read_json = TaggedJson(tags.open, tags.close)
        self._unopened = re.compile(rf"\s*([\w.:-]+)\s*(?={re.escape(tags.key_open)})", re.IGNORECASE)
        self._key_before_close = re.compile(rf"\s*([^<>\n]{{1,{NAME_LIMIT}}}){re.escape(self._key_end)}", re.IGNORECASE)

    def _is_own(self, source: BodySource) -> bool:
        return source.expected_format in self.own or (self.tags is GLM and source.tool_call_body == "pairs")

    def __call__(self, source: BodySource, consumed: list[str], *, is_opened: bool = True) -> Reader[BodyResult | None]:
        """Parse the call. If the text does not begin with a name and pairs in these tags, consume nothing and return
        None. ``is_opened``: whether the call has its opening tag."""
        ahead: list[str] = []
        call = yield from self._consume_name(source, ahead)
        if call is None and (yield from self._begins_with_key(source)):
            consumed.extend(ahead)
            yield from source.consume_through(self._ends, consumed)
            return BodyResult(error=f"the call has no name: expected {self.tags.open}NAME{self.tags.key_open}")
        if call is None:
            source.push_back("".join(ahead))
            return None
        consumed.extend(ahead)
        if source.text.startswith("{", source.position):
            read_json = TaggedJson(self.tags.open, self.tags.close, name=call.name)
            return (yield from read_json(source, consumed)).with_fixes(*call.fixes)
        try:
            return (yield from self._read_pairs(source, consumed, call, is_opened=is_opened))
        except BodyError as error:
            return error.result

    def read(self, source: BodySource, consumed: list[str], *, is_opened: bool = True) -> Reader[BodyResult]:
        """Parse a call, in pairs or JSON, after an opening tag that only one family uses. This method is a
        `BodyReader`."""
        char = yield from source.skip_space(consumed)
        if not char:
            return CUT if source.at_line_start or source.was_cut else TEXT
        if char in "{[":
            return (yield from self._read_json(source, consumed))
        result = yield from self(source, consumed, is_opened=is_opened)
        return TEXT if result is None else result

    def read_unopened(self, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        """Parse a call at the start of an answer that lacks its opening tag: a tool's name, and then a key's tag. If
        the server removed the opening tag, it also removed the closing tag."""
        may_continue = partial(self._may_be_unopened, tools=source.tools)
        if (yield from source.peek_call(self._unopened, NAME_LIMIT, may_continue)) is None:
            return TEXT
        read = partial(self.read, is_opened=False)
        return (yield from read_call_or_text(read, source, consumed)).with_fixes("missing-open-tag")

    def _may_be_unopened(self, ahead: str, tools: ToolSet) -> bool:
        """Return whether ``ahead`` may be the start of a known tool's name and a key's tag."""
        match = _MAY_BE_UNOPENED.fullmatch(ahead)
        return match is not None and (
            self.tags.key_open.lower().startswith(match[2].lower()) if match[2] else tools.has_prefix(match[1])
        )

    def _consume_name(self, source: BodySource, ahead: list[str]) -> Reader[PendingCall | None]:
        """Consume a tool's name into ``ahead``, and return a call to that tool. Return None unless a pair, JSON or the
        end of the call follows."""
        name = yield from _consume_word(source)
        ahead.append(name)
        char = yield from source.skip_space(ahead)
        if not name:
            return None
        call = PendingCall(name, source.tools.match(name))
        is_intended = call.tool is not None or source.at_line_start or self._is_own(source)
        if (yield from source.consume_marker(_end_of_thought, ahead)):
            call.fix("text-in-tag")
            char = yield from source.skip_space(ahead)
        if self._separator is not None and (yield from source.consume_marker(self._separator, ahead)):
            char = yield from source.skip_space(ahead)
        if char == ">":
            ahead.append(char)
            source.position += 1
            char = yield from source.skip_space(ahead)
            call.fix("misspelt-inner-tag")
        if char == "{":
            return call if is_intended else None
        tag = yield from source.consume_marker(self._tags)
        source.push_back(tag)
        match self._kind[tag.lower()]:
            case "key" | "broken key":
                return call
            case "call close" | "call":
                return call if is_intended else None
            case "key close":
                return self._split_glued_key(call, ahead, source)
            case "value close" if call.tool is not None:
                return call  # a stray closer after the name, skipped with the pairs
        begins = (self.tags.key_open, self.tags.separator, self.tags.close)
        is_cut = any(source.is_cut_within(tag) for tag in begins)
        if not char or is_cut:
            return call if source.at_line_start or self._is_own(source) else None
        key = yield from self._peek_key(source)
        return call if call.has_parameter(key) else None

    def _split_glued_key(self, call: PendingCall, ahead: list[str], source: BodySource) -> PendingCall | None:
        """Check whether the name in ``call`` is a tool's name and one of its parameters without a space between them.
        If so, put back the parameter and return a call to the tool. Otherwise, return None."""
        for tool in sorted(source.tools.values(), key=lambda tool: -len(tool.name)):
            key = call.name.removeprefix(tool.name)
            if key != call.name and key in tool.properties:
                source.push_back(key + "".join(ahead[1:]))
                ahead[:] = [tool.name]
                return PendingCall(tool.name, tool)
        return None

    def _begins_with_key(self, source: StreamBuffer) -> Reader[bool]:
        """Return whether the first word is a key rather than a name: a key's closing tag and a value follow it."""
        tag = yield from source.consume_marker(self._after_key)
        following = ""
        if tag and self._kind.get(tag.lower()) == "key close":
            _, following = yield from source.peek_after_space(self._after_key)
        source.push_back(tag)
        return self._kind.get(following.lower()) == "value"

    def _peek_key(self, source: StreamBuffer) -> Reader[str]:
        """Return the next key if its closing tag follows it, or "". Nothing is consumed."""
        limit = NAME_LIMIT + len(self._key_end) + 1
        match = yield from source.peek_match(self._key_before_close, limit, lambda _: True)
        return match[1].strip() if match else ""

    def _read_pairs(
        self, source: StreamBuffer, consumed: list[str], call: PendingCall, *, is_opened: bool
    ) -> Reader[BodyResult]:
        while True:
            char = yield from source.skip_space(consumed)
            tag = yield from source.consume_marker(self._tags)
            match self._kind[tag.lower()]:
                case "key" | "broken key" as kind:
                    consumed.append(tag)
                    call.fix(*(["misspelt-inner-tag"] if kind == "broken key" else []))
                    yield from self._read_pair(source, consumed, call)
                case "call close":
                    consumed.append(tag)
                    return call.build_result()
                case "section close" if not source.was_cut:
                    source.push_back(tag)
                    return call.build_result("missing-close-tag")
                case "call" if not (yield from self._peek_key(source)):
                    is_cut = source.was_cut and self._tags.search(source.text, source.position) is None
                    source.push_back(tag)  # a misspelt key's tag, or the next call: uncertain if the text is cut
                    return CUT if is_cut else call.build_result("missing-close-tag")
                case "call":
                    consumed.append(tag)
                    call.fix("misspelt-inner-tag")
                    yield from self._read_pair(source, consumed, call)
                case "" if (yield from self._peek_key(source)):
                    call.fix("missing-inner-tag")
                    yield from self._read_pair(source, consumed, call)
                case _ if not char or source.consume_cut_marker(self.tags.close, consumed):
                    return call.build_unclosed_result(source, has_begun_to_close=char != "" or not is_opened)
                case _:
                    consumed.append(tag)
                    yield from source.skip_to(self._tags, consumed)
                    call.fix("text-in-tag")

    def _read_pair(self, source: StreamBuffer, consumed: list[str], call: PendingCall) -> Reader[None]:
        """Parse a pair after the key's opening tag."""
        while True:
            written, tag = yield from source.consume_through(self._tags, consumed)
            if self._kind[tag.lower()] != "key" or written.strip():
                break
            call.fix("text-in-tag")  # the key's tag is doubled
        key, type = written.strip(), ""
        match self._kind[tag.lower()]:
            case "key close":
                opened, type = yield from self._read_value_open(source, consumed, call)
                if not opened and (yield from source.peek_after_space(self._no_value))[1]:
                    call.fix("key-without-value")
                    return
            case "value":
                if self.tags.key_close:
                    call.fix("missing-inner-tag")
            case "value close" if (pair := written.partition("="))[1] and call.expects(pair[0].strip()):
                call.fix("misspelt-inner-tag")
                call.add_text(pair[0].strip(), pair[2])
                return
            case "value close" if call.expects(key) and (yield from source.peek_after_space(self._after_key))[1]:
                call.fix("misspelt-inner-tag")
                _, type = yield from self._read_value_open(source, consumed, call)
            case "":
                raise BodyError
            case _:
                raise BodyError(
                    f"a key of {call.name!r} is not closed: expected {self._key_end} after {self.tags.key_open}"
                )
        if not key:
            raise BodyError(f"an argument of {call.name!r} has no name: {self.tags.key_open} is empty")
        call.check_name(key, f"{self.tags.key_open}NAME{self._key_end}")
        call.keys.add(key)

        def may_begin(source: StreamBuffer, _tag: str) -> Reader[bool]:
            """Return whether the tag just consumed begins the next pair: its key is a parameter without an argument so
            far."""
            return call.expects((yield from self._peek_key(source)))

        text, closing = yield from read_value(self._value, source, consumed, may_begin)
        if closing:
            text = call.check_end(key, text, (self.tags.value_open,), (self.tags.value_close,), (self.tags.open,))
        elif text.strip().lower() in ("", self._empty_value):
            call.fix("key-without-value")
            return
        else:
            call.fix("missing-inner-tag")
            call.check_unclosed(key, text, (self.tags.value_close, self.tags.close))
            text = strip_line_break(remove_broken_close(text, key, (self.tags.value_close,), self._key_closes))
        call.add_text(key, text, {"type": type} if type else None)

    def _read_value_open(
        self, source: StreamBuffer, consumed: list[str], call: PendingCall
    ) -> Reader[tuple[bool, str]]:
        """Consume the opening tag of a value, and repeated tags or the value's type before it. Return whether the
        opening tag is present, and the type or "". Without the tag, the value begins at the current position."""
        type = ""
        while True:
            gap: list[str] = []
            char = yield from source.skip_space(gap)
            tag = yield from source.consume_marker(self._after_key)
            if not tag:
                if char:
                    call.fix("missing-inner-tag")
                space = "".join(gap)
                line_end = _LINE_END.match(space)  # it belongs to the tags
                consumed.append(line_end.group() if line_end else "")
                source.push_back(space[len(consumed[-1]) :])
                return False, type
            consumed.extend([*gap, tag])
            if self._kind.get(tag.lower()) == "value":
                return True, type
            if tag.lower() in self._broken_value_opens:
                call.fix("misspelt-inner-tag")
                return True, type
            if self.tags.type and tag.lower() == self.tags.type[0]:
                type = (yield from source.consume_until(self.tags.type[1], NAME_LIMIT, consumed)) or ""
                continue
            call.fix("text-in-tag")


def remove_bracket(tag: str) -> str:
    """Return ``tag`` without its first bracket, which quantized models sometimes omit."""
    return tag.removeprefix("<")


def _consume_word(source: StreamBuffer) -> Reader[str]:
    while True:
        match = _NAME.match(source.text, source.position)
        word = match.group() if match else ""
        if source.final or len(word) >= NAME_LIMIT or source.position + len(word) < len(source.text):
            source.position += len(word)
            return word
        yield
