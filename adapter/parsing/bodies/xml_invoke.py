"""Parse calls written as elements with attributes, whose values are not escaped.

::

    <invoke name="NAME">
    <parameter name="KEY">value, unescaped</parameter>
    </invoke>

Model families spell the tags differently (``<｜DSML｜invoke name="NAME">``, ``<|open|>call tool="NAME"<|sep|>``). Some
declare a value's type in an attribute. One JSON object may replace the parameters.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache

from adapter.core.errors import FormatError
from adapter.core.events import Json, JsonObject
from adapter.core.json.decode import decode_json
from adapter.parsing.bodies.name_and_argument_elements import read_elements
from adapter.parsing.bodies.tagged_arguments import ATTRIBUTES, BodyError, PendingCall, read_value, unwrap_cdata
from adapter.parsing.bodies.tagged_value_end import RawValue, remove_broken_close, strip_line_break
from adapter.parsing.bodies.xml_invoke_tags import ATTRIBUTES_LIMIT, XmlInvokeTags
from adapter.parsing.format import CUT, TEXT, BodyResult, BodySource
from adapter.parsing.marker_set import MarkerSet, get_marker_set
from adapter.parsing.stream_buffer import Reader, StreamBuffer
from adapter.parsing.tagged_json import TaggedJson
from adapter.tools.coercion import coerce_text
from adapter.tools.decoded_json_calls import ARGUMENT_KEYS, parse_arguments
from adapter.tools.tool_set import ToolSet

WORD_LIMIT = 40
"""Maximum length of a misspelt word in a closing tag, in characters. Anything longer is prose."""

TEXT_LIMIT = 4_000
"""Maximum length of text in place of parameters, in characters."""

_ATTRIBUTE = r"\s+([A-Za-z_][\w:.-]*)\s*=\s*(?:[\"“]([^\"“”]*)[\"”]|'([^']*)'|([^\s\"'/>“]+))"
_ATTRIBUTES = re.compile(rf"(?:{_ATTRIBUTE})*\s*(/?)")
_each_attribute = re.compile(_ATTRIBUTE)
_OPEN_ATTRIBUTE = re.compile(rf"(?:{_ATTRIBUTE})*\s+[A-Za-z_][\w:.-]*\s*=\s*\"[^\"\n]*")
_CUT_ATTRIBUTE = re.compile(r"(?:\s+[\w:.-]*)?")
_ELEMENT = re.compile(rf"<([\w-]{{1,100}}){ATTRIBUTES}\s*>")
_FIRST_ELEMENT = re.compile(r"<([A-Za-z][\w-]{0,100})[\s>]")
_ABOUT = frozenset({"id", "index", "type", "string"})
"""Attributes that describe a call or a value rather than being arguments."""
_NAMES = ("name", "tool", "tool_name", "function")
"""Attributes that models use for the tool's name in place of the format's own attribute."""
_BEGINS_ATTRIBUTES = re.compile(r"\s+[A-Za-z_]\w*\s*=[^\n]*")


_OTHER_PARAMETERS = ("<param", "<arg", "<argument")


class XmlInvokeReader:
    """Parses a call after ``<invoke`` or another spelling of its opening tag. An instance is a `BodyReader`."""

    def __init__(self, tags: XmlInvokeTags) -> None:
        self.tags = tags
        # Some models write ``<parameters>`` around the parameters.
        sections = [f"{tag}s{tags.end}" for tag in tags.parameter]
        self._section_closes = [f"{tag.removesuffix('>')}s>" for tag in tags.parameter_close if tag.endswith("r>")]
        self._kind_of = {
            tag.lower(): kind
            for kind, spellings in {
                "broken close": tags.broken_close,
                "call": (*tags.call, *tags.section),
                "call close": (*tags.call_close, *tags.stray_call_close),
                "parameter": tags.parameter,
                "parameters": (*sections, *self._section_closes),
                "parameter close": tags.parameter_close,
                "section close": tags.section_close,
                "json": tags.json[:1] if tags.json else (),
            }.items()
            for tag in spellings
        }
        self._markers = MarkerSet(*self._kind_of)
        self._parameter = MarkerSet(*tags.parameter)
        self._stray_signs = MarkerSet('"', "'", tags.end)
        is_common = not {"<parameter", "<param"}.isdisjoint(tags.parameter)
        others = [f"{tag} " for tag in _OTHER_PARAMETERS if is_common and tag not in tags.parameter]
        self._other_parameters = MarkerSet(*others) if others else None
        self._close_of = {opening.lower(): close for opening, close in zip(tags.call, tags.call_close, strict=True)}
        self._value = RawValue(
            closes=tags.parameter_close,
            next_opens=tags.parameter,
            call_opens=(*tags.call, *tags.section),
            call_closes=(*tags.call_close, *tags.stray_call_close),
            outer_closes=tags.section_close,
            broken_closes=tags.broken_close,
            stray_closes=self._section_closes,
        )

    def __call__(self, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        opening = consumed[-1]
        attributes = yield from self.consume_attributes(source, consumed)
        if key := find_name_key(self.tags.name, attributes, source.tools):
            return (yield from self.read_tag(key, attributes, opening, source, consumed))
        if not consumed[-1].endswith(self.tags.end):
            return CUT if self._ends_in_attributes(source, consumed) else TEXT
        closing = self._close_of[opening.lower()]
        read = TaggedJson(opening, closing) if (yield from source.skip_space(consumed)) == "{" else None
        result = yield from (read(source, consumed) if read else read_elements(source, consumed, closing))
        return result.with_fixes("misspelt-open-tag")

    def read_tag(
        self, name_key: str, attributes: dict[str, str], opening: str, source: BodySource, consumed: list[str]
    ) -> Reader[BodyResult]:
        """Parse the rest of a call whose opening tag was just consumed. ``opening`` is the start of that tag.
        ``attributes`` are its attributes; the one called ``name_key`` names the tool."""
        name = attributes[name_key]
        call = PendingCall(name, source.tools.match(name))
        is_empty = self._is_empty_element(consumed)
        for key, text in attributes.items():
            if key in (name_key, *_ABOUT):
                continue
            is_object = key in ARGUMENT_KEYS and text.lstrip().startswith("{") and not call.has_parameter(key)
            if is_object or is_empty or call.find_schema(key) is not None:
                call.fix("value-in-attribute")
            if is_object:
                try:
                    call.arguments |= parse_arguments(text)[0]
                except FormatError as error:
                    call.problem = f"the attribute {key!r} in the call of {name!r} is not a JSON object: {error}"
            elif is_empty or call.find_schema(key) is not None:
                call.add_text(key, text)
        return call.build_result() if is_empty else (yield from self._read_arguments(call, opening, source, consumed))

    def read_named(self, name: str, opening: str, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        """Parse the body after ``opening``, a complete opening tag that does not contain the tool's ``name``."""
        call = PendingCall(name, source.tools.match(name))
        return (yield from self._read_arguments(call, opening, source, consumed))

    def _read_arguments(
        self, call: PendingCall, opening: str, source: BodySource, consumed: list[str]
    ) -> Reader[BodyResult]:
        try:
            while True:
                char = yield from source.skip_space(consumed)
                if self._other_parameters is not None and not call.arguments:
                    other = yield from source.consume_marker(self._other_parameters)
                    source.push_back(other)
                    if other:
                        read_other = _build_with_parameter(self.tags, other[1:-1].lower())
                        return (yield from read_other._read_arguments(call, opening, source, consumed))
                if char == "{" and not call.arguments:
                    read_json = TaggedJson(opening, self._close_of[opening.lower()], name=call.name)
                    return (yield from read_json(source, consumed))
                marker = yield from source.consume_marker(self._markers)
                match self._kind_of.get(marker.lower()):
                    case "parameter":
                        consumed.append(marker)
                        yield from self._read_parameter(source, consumed, call)
                    case "parameters":
                        consumed.append(marker)
                        call.fix("text-in-tag")
                    case "call close":
                        consumed.append(marker)
                        return call.build_result()
                    case "section close":
                        consumed.append(marker)
                        return call.build_result("missing-close-tag")
                    case "broken close" if call.arguments:
                        consumed.append(marker)
                        word = yield from source.consume_until(">", WORD_LIMIT, consumed)
                        if word is None:
                            return CUT
                        if "<" in word:  # the next tag: this one lost its bracket
                            source.push_back(consumed.pop()[word.index("<") :])
                            consumed.append(word[: word.index("<")])
                        if not (yield from source.peek_after_space(self._parameter))[1]:
                            return call.build_result("misspelt-close-tag")
                        call.fix("text-in-tag")
                    case "call":
                        if not (yield from self._read_misnamed(marker, source, consumed, call)):
                            source.push_back(marker)
                            return call.build_result("missing-close-tag")
                    case "json":
                        consumed.append(marker)
                        yield from self._read_json(source, consumed, call)
                    case _ if not char or (
                        source.final and self._markers.may_start_with(source.text[source.position :])
                    ):
                        consumed.append(source.consume_rest())
                        return call.build_unclosed_result(source, has_begun_to_close=char != "")
                    case None if key := (yield from self._consume_element(source, consumed, call)):
                        yield from self._read_element(source, consumed, call, key, f"</{key}>")
                    case None if not call.arguments and (yield from self._skip_stray_sign(source, consumed, call)):
                        call.fix("text-in-tag")
                    case None if not call.arguments and not (yield from self._holds_text(source, call)):
                        return TEXT  # the tag was only mentioned
                    case _:
                        start = len(consumed)
                        consumed.append(marker)
                        yield from source.skip_to(self._markers, consumed)
                        skipped = "".join(consumed[start:])
                        call.add_loose_text(skipped)
                        if (element := _FIRST_ELEMENT.search(skipped)) and f"</{element[1]}>" in skipped:
                            call.problem = f"<{element[1]}> in the call of {call.name!r} is not a parameter"
        except BodyError as error:
            return error.result

    def _skip_stray_sign(self, source: BodySource, consumed: list[str], call: PendingCall) -> Reader[bool]:
        """If a stray quote or bracket comes between the call's opening tag and its first parameter, consume it and
        return True."""
        if call.tool is None or not (source.at_line_start or source.after_call):
            return False
        sign = yield from source.consume_marker(self._stray_signs)
        if not sign or not (yield from source.peek_after_space(self._parameter))[1]:
            source.push_back(sign)
            return False
        consumed.append(sign)
        return True

    def _holds_text(self, source: BodySource, call: PendingCall) -> Reader[bool]:
        """Return whether the call contains text instead of parameters, up to a closing tag at the end of a line."""
        if not call.find_loose_parameter() or not (source.at_line_start or source.after_call):
            return False
        if not (yield from source.peek_marker(self._markers, TEXT_LIMIT)):
            return False
        ahead: list[str] = []
        marker = yield from source.read_until(self._markers, ahead)
        is_alone = (yield from source.begins_block()) or source.is_empty
        source.push_back("".join(ahead) + marker)
        return is_alone and self._kind_of.get(marker.lower()) == "call close"

    def _read_parameter(self, source: StreamBuffer, consumed: list[str], call: PendingCall) -> Reader[None]:
        """Parse a parameter after ``<parameter`` or another spelling of its opening tag."""
        attributes = yield from self.consume_attributes(source, consumed)
        key = attributes.get(self.tags.key, "").strip()
        if self.tags.key not in attributes and len(attributes) == 1 and call.expects(*attributes.values()):
            call.fix("attribute-syntax")
            (key,) = attributes.values()
        if not key:
            rest = source.text[source.position :]
            if self._ends_in_attributes(source, consumed) or (source.final and _CUT_ATTRIBUTE.fullmatch(rest)):
                consumed.append(source.consume_rest())
                raise BodyError
            raise BodyError(f'a parameter of {call.name!r} has no name: expected {self.tags.key}="NAME"')
        if self._is_empty_element(consumed):
            self._add_attribute(call, key, attributes)
            return
        if self.tags.escape is None:
            call.check_name(key, f'{self.tags.key}="NAME"')
        call.keys.add(key)

        def may_begin(source: StreamBuffer, _tag: str) -> Reader[bool]:
            """Return whether an opening tag in a value without a closing tag begins the next parameter."""
            ahead: list[str] = []
            following = yield from self.consume_attributes(source, ahead)
            source.push_back("".join(ahead))
            next_key = following.get(self.tags.key)
            return next_key is not None and call.expects(next_key)

        text, closing = yield from read_value(self._value, source, consumed, may_begin)
        if closing and not text.strip() and self._select_values(attributes):
            self._add_attribute(call, key, attributes)
            return
        if not closing:
            call.fix("missing-inner-tag")
            call.check_unclosed(key, text, (*self.tags.parameter_close, *self.tags.call_close))
            others = [] if any(tag in text for tag in self.tags.parameter) else self._section_closes
            text = strip_line_break(remove_broken_close(text, key, self.tags.parameter_close, others))
        else:
            text = call.check_end(key, text, self.tags.parameter, self.tags.parameter_close, self.tags.call)
        call.check_cdata(key, text)
        content = unwrap_cdata(text, {} if self.tags.has_cdata else call.fixes)
        if self.tags.has_cdata and content is not text:
            attributes["string"] = "true"
        decoded, fixes = _decode(content, attributes, call.find_schema(key))
        call.fix(*fixes)
        call.add_value(key, decoded)

    def _consume_element(self, source: StreamBuffer, consumed: list[str], call: PendingCall) -> Reader[str]:
        """Consume ``<KEY>``, with any attributes, if KEY is a parameter of the tool, as in Cline's prompts, and return
        KEY. Otherwise, consume nothing and return ""."""
        taken: list[str] = []
        yield from source.consume_until(">", ATTRIBUTES_LIMIT, taken)
        match = _ELEMENT.fullmatch("".join(taken))
        if match is None or not call.has_parameter(match[1]):
            source.push_back("".join(taken))
            return ""
        consumed.extend(taken)
        return match[1]

    def _read_element(
        self, source: StreamBuffer, consumed: list[str], call: PendingCall, key: str, *closes: str
    ) -> Reader[None]:
        """Parse the value of ``key`` up to one of ``closes``."""
        value, closing = yield from source.consume_through(get_marker_set(*closes), consumed)
        if not closing:
            raise BodyError
        call.fix("misspelt-inner-tag")
        call.add_text(key, value)

    def _read_misnamed(self, marker: str, source: BodySource, consumed: list[str], call: PendingCall) -> Reader[bool]:
        """Parse a call's tag that names a parameter instead of a tool, or that repeats the current call's tag. If the
        tag begins the next call, consume nothing and return False."""
        taken = [marker]
        attributes = yield from self.consume_attributes(source, taken)
        key, is_empty = attributes.get(self.tags.name, ""), self._is_empty_element(taken)
        is_parameter = key and call.find_schema(key) is not None and source.tools.match(key) is None
        is_again = key == call.name and call.tool is not None and call.tool.required and not call.arguments
        if not is_parameter and not (is_again and not is_empty):
            source.push_back("".join(taken[1:]))
            return False
        consumed.extend(taken)
        if key == call.name:
            call.fix("text-in-tag")
        elif is_empty:
            self._add_attribute(call, key, attributes)
        else:
            yield from self._read_element(source, consumed, call, key, *self.tags.call_close)
        return True

    def _is_empty_element(self, consumed: list[str]) -> bool:
        """Return whether the tag whose attributes were just consumed is empty, such as ``<parameter name="KEY"/>``."""
        return consumed[-1].removesuffix(self.tags.end).endswith("/")

    def _select_values(self, attributes: dict[str, str]) -> dict[str, str]:
        """Return the ``attributes`` of a parameter's tag that may hold the parameter's value."""
        return {name: text for name, text in attributes.items() if name not in (self.tags.key, *_ABOUT)}

    def _add_attribute(self, call: PendingCall, key: str, attributes: dict[str, str]) -> None:
        """Add the parameter ``key`` to ``call``. Its element is empty, so the value is in an attribute, or empty."""
        values = self._select_values(attributes)
        if attributes.get("string") not in ("true", "false", None):
            values["string"] = attributes["string"]
        if len(values) > 1:
            names = ", ".join(values)
            call.problem = f"{key!r} of {call.name!r} has the attributes {names}: write its value between its tags"
        call.fix("value-in-attribute" if values else "misspelt-inner-tag")
        call.add_text(key, next(iter(values.values()), ""))

    def _read_json(self, source: BodySource, consumed: list[str], call: PendingCall) -> Reader[None]:
        """Parse the element that contains all arguments as one JSON object."""
        assert self.tags.json is not None
        yield from self.consume_attributes(source, consumed)
        result = yield from TaggedJson(*self.tags.json, name=call.name)(source, consumed)
        if not result.calls:
            raise BodyError(result=result)
        call.arguments.update(result.calls[0].arguments)
        call.fix(*result.fixes)

    def consume_attributes(self, source: StreamBuffer, consumed: list[str]) -> Reader[dict[str, str]]:
        """Consume the rest of a tag, from its attributes on, and return the attributes. For other text, consume nothing
        and return {}."""
        taken: list[str] = []
        text = yield from source.consume_until(self.tags.end, ATTRIBUTES_LIMIT, taken)
        while text is not None and len(text) < ATTRIBUTES_LIMIT and _OPEN_ATTRIBUTE.fullmatch(text):
            more = yield from source.consume_until(self.tags.end, ATTRIBUTES_LIMIT - len(text), taken)
            text = None if more is None else f"{text}{self.tags.end}{more}"  # the end was in quotes
        if text is None or _ATTRIBUTES.fullmatch(text) is None:
            source.push_back("".join(taken))
            return {}
        consumed.extend(taken)
        found = _each_attribute.findall(text)
        return {key: self.tags.unescape(double or single or bare) for key, double, single, bare in found}

    def _ends_in_attributes(self, source: StreamBuffer, consumed: list[str]) -> bool:
        """If the text ends within a tag's attributes, consume the rest and return True. Otherwise, return False."""
        rest = source.text[source.position :]
        if not source.final or not _BEGINS_ATTRIBUTES.fullmatch(rest):
            return False
        consumed.append(source.consume_rest())
        return True


def find_name_key(own: str, attributes: dict[str, str], tools: ToolSet) -> str:
    """Return the key of the attribute that names the tool: ``own``, or another attribute with a known tool as its
    value. Return "" if there is none."""
    if attributes.get(own):
        return own
    return next((key for key in _NAMES if tools.match(attributes.get(key, ""))), "")


def _decode(text: str, attributes: dict[str, str], schema: JsonObject | None) -> tuple[Json, tuple[str, ...]]:
    """Convert a value to the type in its tag's attributes (``string="false"``, ``type="number"``) or, without these, in
    the parameter's schema. Return the value and the repairs."""
    is_string = attributes.get("string", attributes.get("type"))
    if is_string in ("true", "string"):
        return text, ()
    if is_string is not None:
        with suppress(FormatError):
            value = decode_json(text, closed=False)
            if not text[value.end :].strip():
                return value.value, value.fixes
    repairs: dict[str, None] = {}
    return coerce_text(text, schema, repairs), tuple(repairs)


@lru_cache(maxsize=64)
def _build_with_parameter(tags: XmlInvokeTags, word: str) -> XmlInvokeReader:
    """Return a parser for calls with the ``tags`` of a family, but with ``<word>`` elements as parameters. In other
    calls, such tags are part of a value."""
    return XmlInvokeReader(tags._replace(parameter=(f"<{word}",), parameter_close=(f"</{word}>",)))
