"""Reads calls written as elements with attributes, whose values are not escaped.

::

    <invoke name="NAME">
    <parameter name="KEY">value, as it is</parameter>
    </invoke>

The families spell the tags differently (``<｜DSML｜invoke name="NAME">``,
``<|open|>call tool="NAME"<|sep|>``) and some say in an attribute what a value is.
In place of parameters there may be one JSON object.
"""

from __future__ import annotations

import re

from adapter.reading.bodies.arguments import add_text, add_value, without_cdata
from adapter.reading.bodies.bare_value import BareValue, ends_twice, why_twice, without_broken_close, without_line_end
from adapter.reading.bodies.element_tags import ATTRIBUTES_LIMIT, Tags
from adapter.reading.format import CUT_OFF, TEXT, Context, Reading
from adapter.reading.markers import Markers, markers_for
from adapter.reading.source import Reader, Source, collect, skip_space, take_marker, take_until
from adapter.reading.tagged_json import TaggedJson
from adapter.tools.definition import Tool
from adapter.tools.schema import from_text
from adapter.tools.shapes import Decoded
from adapter.values.decoding import decode_json
from adapter.values.errors import FormatError
from adapter.values.events import Json, JsonObject
from adapter.values.fields import field, mutable
from adapter.values.lazy_pattern import lazy_pattern

_ATTRIBUTE = r"\s+([A-Za-z_][\w:.-]*)\s*=\s*(?:[\"“]([^\"“”]*)[\"”]|'([^']*)'|([^\s\"'/>“]+))"
_ATTRIBUTES = lazy_pattern(rf"(?:{_ATTRIBUTE})*\s*(/?)")
_each_attribute = lazy_pattern(_ATTRIBUTE)
_CUT_ATTRIBUTE = lazy_pattern(r"(?:\s+[\w:.-]*)?")
_CDATA = lazy_pattern(r"\s*<!\[CDATA\[(.*)\]\]>\s*", re.DOTALL)
_ELEMENT = lazy_pattern(r"<([\w-]{1,100})>")
_ABOUT = frozenset({"id", "index", "type", "string"})
"""Attributes that say something of a call or a value, and are none."""
_BEGINS_ATTRIBUTES = lazy_pattern(r"\s+[A-Za-z_]\w*\s*=[^\n]*")


@mutable
class _Call:
    """The call read so far."""

    name: str
    tool: Tool | None
    read_json: TaggedJson
    """Reads all arguments as one object, up to the call's end."""
    arguments: JsonObject = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    fixes: dict[str, None] = field(default_factory=dict)
    problem: str | None = None
    """Why it is none, all of it being taken."""

    def schema_of(self, key: str) -> JsonObject | None:
        return self.tool.properties.get(key) if self.tool else None

    def add(self, key: str, text: str, fix: str) -> None:
        """An argument that does not stand in a parameter's element."""
        self.keys.add(key)
        self.fixes[fix] = None
        add_text(self.arguments, key, text, self.schema_of(key), self.fixes)

    def reading(self, *fixes: str) -> Reading:
        if self.problem is not None:
            return Reading(error=self.problem)
        return Reading((Decoded(self.name, self.arguments),), (*self.fixes, *fixes))


class ElementBody:
    """Reads a call after its opening tag's spelling has been taken. An instance is a `BodyReader`."""

    def __init__(self, tags: Tags) -> None:
        self.tags = tags
        json_open = tags.json[:1] if tags.json else ()
        self._marker_of = {
            tag.lower(): kind
            for kind, spellings in {
                "call": (*tags.call, *tags.section),
                "call close": (*tags.call_close, *tags.stray_call_close),
                "parameter": tags.parameter,
                "parameter close": tags.parameter_close,
                "section close": tags.section_close,
                "json": json_open,
            }.items()
            for tag in spellings
        }
        self._markers = Markers(*self._marker_of)
        self._close_of = {opening.lower(): close for opening, close in zip(tags.call, tags.call_close, strict=True)}
        self._value = BareValue(
            closes=tags.parameter_close,
            next_opens=tags.parameter,
            call_opens=(*tags.call, *tags.section),
            call_closes=(*tags.call_close, *tags.stray_call_close),
            outer_closes=tags.section_close,
        )

    def __call__(self, source: Source, span: list[str], context: Context) -> Reader[Reading]:
        opening = span[-1]
        attributes = yield from self._take_attributes(source, span)
        name = attributes.get(self.tags.name) if attributes else None
        if not name:
            return Reading(error=CUT_OFF) if self._ends_in_attributes(source, span) else TEXT
        call = self._call(name, opening, context)
        closes_itself = self._closes_itself(span)
        for key, text in attributes.items() if attributes else ():
            if key not in (self.tags.name, *_ABOUT) and (closes_itself or call.schema_of(key) is not None):
                call.add(key, text, "value-in-attribute")
        if closes_itself:
            return call.reading()
        return (yield from self._read_parameters(source, span, context, call))

    def read_named(self, name: str, opening: str, source: Source, span: list[str], context: Context) -> Reader[Reading]:
        """What follows the call's ``opening`` tag, all of it taken, where its name does not stand in that."""
        return (yield from self._read_parameters(source, span, context, self._call(name, opening, context)))

    def _call(self, name: str, opening: str, context: Context) -> _Call:
        return _Call(name, context.tools.match(name), TaggedJson(opening, self._close_of[opening.lower()], name=name))

    def _read_parameters(self, source: Source, span: list[str], context: Context, call: _Call) -> Reader[Reading]:
        while True:
            char = yield from skip_space(source, span)
            if char == "{" and not call.arguments:
                return (yield from call.read_json(source, span, context))
            marker = yield from take_marker(source, self._markers)
            match self._marker_of.get(marker.lower()):
                case "parameter":
                    span.append(marker)
                    error = yield from self._read_parameter(source, span, call)
                    if error is not None:
                        return error
                case "call close":
                    span.append(marker)
                    return call.reading()
                case "section close":
                    span.append(marker)
                    return call.reading("missing-close-tag")
                case "call":
                    taken = [marker]
                    misnamed = yield from self._take_misnamed(source, taken, context, call)
                    if misnamed is not None:
                        span.extend(taken)
                        error = yield from self._read_misnamed(source, span, call, misnamed)
                        if error is not None:
                            return error
                        continue
                    source.unread(marker)
                    return call.reading("missing-close-tag")
                case "json":
                    span.append(marker)
                    error = yield from self._read_json(source, span, context, call)
                    if error is not None:
                        return error
                case _:
                    if not char or (source.final and self._markers.may_begin(source.text[source.position :])):
                        span.append(source.rest())
                        return Reading(error=CUT_OFF)
                    if not marker and (key := (yield from self._take_element(source, span, call))):
                        error = yield from self._read_element(source, span, call, key, f"</{key}>")
                        if error is not None:
                            return error
                        continue
                    if not marker and not call.arguments:
                        return TEXT  # the tag was only mentioned
                    span.append(marker)
                    yield from self._skip_junk(source, span)
                    call.fixes["text-in-tag"] = None

    def _read_parameter(self, source: Source, span: list[str], call: _Call) -> Reader[Reading | None]:
        """A parameter after its opening tag's spelling: None when it was read, else the error."""
        attributes = yield from self._take_attributes(source, span)
        key = attributes.get(self.tags.key) if attributes else None
        if not attributes or not key:
            rest = source.text[source.position :]
            if self._ends_in_attributes(source, span) or (source.final and _CUT_ATTRIBUTE.fullmatch(rest)):
                span.append(source.rest())
                return Reading(error=CUT_OFF)
            return Reading(error=f'a parameter of {call.name!r} has no name: expected {self.tags.key}="NAME"')
        if self._closes_itself(span):
            self._add_attribute(call, key, attributes)
            return None
        call.keys.add(key)
        value: list[str] = []

        def may_begin(source: Source, tag: str) -> Reader[bool]:
            return self._is_next(source, tag, call)

        closing = yield from self._value.take(source, value, may_begin)
        span.extend(value)
        if closing is None:
            return Reading(error=CUT_OFF)
        span.append(closing)
        text = "".join(value)
        if not closing:
            call.fixes["missing-inner-tag"] = None
            text = without_line_end(without_broken_close(text, key, self.tags.parameter_close))
        elif twice := ends_twice(text, self.tags.parameter, self.tags.parameter_close):
            call.problem = why_twice(call.name, key, twice)
        schema = call.schema_of(key)
        if self.tags.has_cdata and (data := _CDATA.fullmatch(text)):
            text, attributes["string"] = data[1], "true"
        value_read, fixes = _decode(without_cdata(text, call.fixes), attributes, schema)
        call.fixes.update(dict.fromkeys(fixes))
        add_value(call.arguments, key, value_read, schema, call.fixes)
        return None

    def _take_element(self, source: Source, span: list[str], call: _Call) -> Reader[str]:
        """``<KEY>`` for a parameter of the tool, as Cline's prompts have it, taken; "" and nothing taken else."""
        taken: list[str] = []
        yield from take_until(source, ">", ATTRIBUTES_LIMIT, taken)
        found = _ELEMENT.fullmatch("".join(taken))
        if found is None or call.tool is None or found[1] not in call.tool.properties:
            source.unread("".join(taken))
            return ""
        span.extend(taken)
        return found[1]

    def _read_element(
        self, source: Source, span: list[str], call: _Call, key: str, *closes: str
    ) -> Reader[Reading | None]:
        """The value up to one of ``closes``: None when it was read, else the error."""
        value: list[str] = []
        closing = yield from collect(source, markers_for(*closes), value)
        span.extend([*value, closing])
        if not closing:
            return Reading(error=CUT_OFF)
        call.add(key, "".join(value), "misspelt-inner-tag")
        return None

    def _take_misnamed(
        self, source: Source, taken: list[str], context: Context, call: _Call
    ) -> Reader[dict[str, str] | None]:
        """The attributes of a call's tag, of which ``taken`` has the beginning, that opens none within this call: it
        names a parameter, or this call again. None, with nothing taken, at the next call."""
        attributes = yield from self._take_attributes(source, taken)
        name = attributes.get(self.tags.name) if attributes else None
        is_parameter = name and call.schema_of(name) is not None and context.tools.match(name) is None
        is_again = name == call.name and call.tool is not None and call.tool.required and not call.arguments
        if is_parameter or (is_again and not self._closes_itself(taken)):
            return attributes
        source.unread("".join(taken[1:]))
        return None

    def _read_misnamed(
        self, source: Source, span: list[str], call: _Call, attributes: dict[str, str]
    ) -> Reader[Reading | None]:
        """What follows such a tag: None when it was read, else the error."""
        key = attributes[self.tags.name]
        if key == call.name:
            call.fixes["text-in-tag"] = None
        elif self._closes_itself(span):
            self._add_attribute(call, key, attributes)
        else:
            return (yield from self._read_element(source, span, call, key, *self.tags.call_close))
        return None

    def _closes_itself(self, span: list[str]) -> bool:
        """Whether the tag whose attributes were just taken is an empty element."""
        return span[-1].removesuffix(self.tags.end).endswith("/")

    def _add_attribute(self, call: _Call, key: str, attributes: dict[str, str]) -> None:
        """The value of a parameter that is an empty element: it stands in an attribute, or is empty."""
        written = {name: text for name, text in attributes.items() if name not in (self.tags.key, *_ABOUT)}
        if attributes.get("string") not in ("true", "false", None):
            written["string"] = attributes["string"]
        if len(written) > 1:
            names = ", ".join(written)
            call.problem = f"{key!r} of {call.name!r} has the attributes {names}: write its value between its tags"
        call.add(key, next(iter(written.values()), ""), "value-in-attribute" if written else "misspelt-inner-tag")

    def _is_next(self, source: Source, _tag: str, call: _Call) -> Reader[bool]:
        """Whether a parameter's opening tag in a value is the next one, the value's end missing."""
        ahead: list[str] = []
        attributes = yield from self._take_attributes(source, ahead)
        source.unread("".join(ahead))
        key = attributes.get(self.tags.key) if attributes else None
        return key is not None and key not in call.keys and call.tool is not None and key in call.tool.properties

    def _read_json(self, source: Source, span: list[str], context: Context, call: _Call) -> Reader[Reading | None]:
        """The element that holds all arguments as one object: None when it was read, else the error."""
        assert self.tags.json is not None
        yield from self._take_attributes(source, span)
        reading = yield from TaggedJson(*self.tags.json, name=call.name)(source, span, context)
        if not reading.calls:
            return reading
        call.arguments.update(reading.calls[0].arguments)
        call.fixes.update(dict.fromkeys(reading.fixes))
        return None

    def _take_attributes(self, source: Source, span: list[str]) -> Reader[dict[str, str] | None]:
        """The attributes of a tag, taken with its end; None, with nothing taken, when there is no such tag."""
        taken: list[str] = []
        text = yield from take_until(source, self.tags.end, ATTRIBUTES_LIMIT, taken)
        if text is None or _ATTRIBUTES.fullmatch(text) is None:
            source.unread("".join(taken))
            return None
        span.extend(taken)
        found = _each_attribute.findall(text)
        return {key: self.tags.unescape(double or single or bare) for key, double, single, bare in found}

    def _ends_in_attributes(self, source: Source, span: list[str]) -> bool:
        """Take the rest where the text ends within a tag's attributes."""
        rest = source.text[source.position :]
        if not source.final or not _BEGINS_ATTRIBUTES.fullmatch(rest):
            return False
        span.append(source.rest())
        return True

    def _skip_junk(self, source: Source, span: list[str]) -> Reader[None]:
        """Take text between the elements, up to the next tag."""
        junk: list[str] = []
        marker = yield from collect(source, self._markers, junk)
        span.extend(junk)
        source.unread(marker)


def _decode(text: str, attributes: dict[str, str], schema: JsonObject | None) -> tuple[Json, tuple[str, ...]]:
    """A value by what its tag says of it (``string="false"``, ``type="number"``), else by the tool's schema."""
    is_string = attributes.get("string", attributes.get("type"))
    if is_string is None:
        return from_text(text, schema), ()
    if is_string in ("true", "string"):
        return text, ()
    try:
        value = decode_json(text, closed=False)
    except FormatError:
        return from_text(text, schema), ()
    if text[value.end :].strip():
        return from_text(text, schema), ()
    return value.value, value.fixes
