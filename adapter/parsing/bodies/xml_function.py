"""Parse calls written as XML functions, after ``<function=``.

::

    <function=NAME>
    <parameter=KEY>
    value, unescaped, over any number of lines
    </parameter>
    </function>

Values are not escaped, so a tag closes a value only if the grammar allows the text after it: after ``</parameter>``,
another parameter or the end of the function. A complete call inside a value is part of it. Well-formed text is closed
immediately. A tag counts as missing only where the text after it shows that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from adapter.parsing.bodies.name_value_elements import read_named_value
from adapter.parsing.bodies.tagged_arguments import ATTRIBUTES, BodyError, PendingCall, read_value
from adapter.parsing.bodies.tagged_value_end import RawValue, remove_broken_close, strip_line_break
from adapter.parsing.format import TEXT, BodyResult, BodySource
from adapter.parsing.marker_set import MarkerSet, get_marker_set
from adapter.parsing.stream_buffer import NAME_LIMIT, Reader, StreamBuffer
from adapter.parsing.tagged_json import TaggedJson
from adapter.tools.tool_set import ToolSet

INLINE_VALUES = "inline values"
"""Member of `Format.body_variants`: values are on the same line as their tags."""

_FUNCTION_TAGS = ("<function=", "<function ", "</function>", "<tool_call>", "</tool_call>")
_PARAMETER_TAGS: dict[str, tuple[str, ...]] = {
    "<parameter=": (),
    "<parameter ": ("attribute-syntax",),
    "<parameter<": ("misspelt-inner-tag",),
    "parameter=": ("misspelt-inner-tag",),
}
"""Maps each opening tag of a parameter, including misspelt ones, to the repairs that are recorded for it."""

_TAGS = MarkerSet(*_FUNCTION_TAGS, *_PARAMETER_TAGS, "</parameter>")
_PARAMETER_CLOSE = MarkerSet("</parameter>")
_CLOSE = MarkerSet("</tool_call>")
_value = RawValue(
    closes=["</parameter>"],
    next_opens=[*_PARAMETER_TAGS],
    call_opens=["<tool_call>", "<function=", "<function "],
    call_closes=["</function>"],
    outer_closes=["</tool_call>", "</seed:tool_call>"],
    opens_line=True,
)
_STRAY_CLOSES = MarkerSet("</function>", "</function_invocation>")
_FUNCTION_ENDS = ("</function>", "</tool_call>")
_ELEMENT_ENDS = ("</parameter>", *_FUNCTION_ENDS)
_ODD_NAME = frozenset("=\"'")
_FENCE = MarkerSet("```json", "```")
_JSON = re.compile(r"\{|\[(?:\"|\s*+\{)")
"""Matches the start of an object, or of a list, which is unlike a shell's ``[ -f a.txt ]``."""
_MAY_BE_JSON = re.compile(r"\[\s*+")
_OPEN_NAME = re.compile(
    r"(?:<function>\s*)?([\w.:-]+)\s*(?:(?:</function>\s*)?(?=<parameter(?:[=>]|\s+name=))|(?=</function>|\{))",
    re.IGNORECASE,
)
_EMPTY_ELEMENT = re.compile(r"([\w.:-]+)[\"']?(?:\s+value\s*=\s*(?:\"([^\"]*)\"|'([^']*)'))?\s*/")
_TYPED_NAME = re.compile(r"([\w.:-]+)[\"'](?:\s+(?:string|type)\s*=\s*(?:\"[^\"]*\"?|'[^']*'?))+", re.IGNORECASE)
"""Matches a quoted name after its first quote, and attributes that declare the value's type, as DeepSeek writes:
``name="KEY" string="true"``. The attributes are ignored, because the tool's schema gives the type."""
_WHOLE_KEY = re.compile(r"[\w.-]+>")
_OPEN_TAG = re.compile(r"([\w.-]+)(?:=([^<>\n]+)(?:>\s*)?</parameter>|[ \t]*\r?\n(?!\s*[<>])(?=\s*\S))", re.IGNORECASE)
"""Matches a parameter's name in a tag that lacks its closing bracket, and a value on the same line."""
_MAY_BE_OPEN_TAG = re.compile(r"[\w.-]*+(?:=[^<>\n]*+(?:>\s*+)?(?:<[/a-z]*+)?|[ \t]*+\r?(?:\n\s*+)?)", re.IGNORECASE)
_NAME_AND_ATTRIBUTES = re.compile(r"([\w.:-]+)((?:\s+[\w-]+\s*=\s*(?:\"[^\"]*(?:\"|\Z)|'[^']*(?:'|\Z)))+)")
_each_attribute = re.compile(r"\s([\w-]+)\s*=\s*(?:\"([^\"]*)|'([^']*))")
_DOUBLED_BRACKET = re.compile(r">\r?\n")
"""Matches the rest of a tag with a doubled bracket, ``<parameter=KEY>>``. A value that begins with a bracket is on a
separate line."""

_ELEMENT = re.compile(rf"<([^\s<>]+){ATTRIBUTES}\s*>")
_UNKNOWN_ELEMENT = re.compile(r"<[A-Za-z]\w*[ =][^<>]*>")
_MAY_BE_OPEN_NAME = re.compile(r"(?:<\w*+(?:>\s*+)?)?+[\w.:-]*+\s*+(?:</\w*+(?:>\s*+)?)?+(?:<\w*+)?")
_SECTION_CLOSE = re.compile(r"(?:</parameter>\s*)?</parameters>\s*\Z", re.IGNORECASE)
"""Matches the end of a ``<parameters>`` element, which some models write around the parameters."""


@dataclass(slots=True)
class _Function(PendingCall):
    is_inline: bool = False
    """True if values are on the same line as their tags. Line breaks at their start and end then belong to them."""

    def add(self, key: str, text: str, *, is_closed: bool = False) -> None:
        if is_closed:
            text = self.check_end(key, text, ("<parameter",), ("</parameter>",), ("<function=", "<function "))
        self.add_text(key, self._strip_margins(text))

    def _strip_margins(self, text: str) -> str:
        """Return ``text`` without the line breaks that belong to the tags: both around a value on separate lines,
        otherwise a single one before the closing tag."""
        line_end = "\r\n" if text.startswith("\r\n") else "\n"
        inner = text.removeprefix(line_end)
        if inner != text:
            return text if self.is_inline and not inner.endswith(line_end) else inner.removesuffix(line_end)
        inner = text.removesuffix(line_end)
        return text if self.is_inline or "\n" in inner else inner

    def may_begin(self, key: str) -> bool:
        """Return whether an opening tag for ``key`` in an unclosed value can begin the next parameter."""
        return key not in self.keys and (self.tool is None or key in self.tool.properties)


def read_xml_function(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse a call after ``<function=`` or ``<function ``, and consume a ``</tool_call>`` that follows the call."""
    return (yield from _read(source, consumed, is_inline=INLINE_VALUES in source.body_variants))


def read_inline_function(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse a call like `read_xml_function`, in a format that writes values on the same line as their tags."""
    return (yield from _read(source, consumed, is_inline=True))


def _read(source: BodySource, consumed: list[str], *, is_inline: bool) -> Reader[BodyResult]:
    opener = consumed[-1].lower()
    function = _Function("", None, is_inline=is_inline)
    open_name = yield from find_open_name(source)
    if open_name is not None:
        source.consume_match(open_name, consumed)
        function.fix("misspelt-inner-tag")
    name = open_name[1] if open_name else (yield from consume_tag_name(source, consumed))
    if not name:
        return TEXT
    function.name, function.tool = name, source.tools.get(name)
    if function.tool is None and (described := _NAME_AND_ATTRIBUTES.fullmatch(name)):
        _add_attributes(function, described[1], described[2], source.tools)
    if opener.startswith("<function "):
        function.fix("attribute-syntax")
    is_empty = name.endswith("/")
    if is_empty:
        function.name = name.rstrip("/ \"'")
    if function.tool is None and not _ODD_NAME.isdisjoint(function.name):
        function.problem = f"a call has no name but {function.name!r}: expected <function=NAME>"
    if is_empty:
        yield from _consume_close(source, consumed)
        return function.build_result()
    try:
        return (yield from _read_arguments(source, consumed, function))
    except BodyError as error:
        return error.result


def _add_attributes(function: _Function, name: str, attributes: str, tools: ToolSet) -> None:
    """Add the arguments in ``<function=NAME KEY="value">`` if all keys are parameters of the tool."""
    tool = tools.get(name)
    values = {key: double or single for key, double, single in _each_attribute.findall(attributes)}
    if tool is None or not values.keys() <= tool.properties.keys():
        return
    function.name, function.tool = name, tool
    function.fix("value-in-attribute")
    for key, value in values.items():
        function.add_text(key, value)


def _read_arguments(source: BodySource, consumed: list[str], function: _Function) -> Reader[BodyResult]:
    while True:
        char = yield from source.skip_space(consumed)
        if char == "`" and not function.arguments:
            yield from source.consume_marker(_FENCE, consumed)
            char = yield from source.skip_space(consumed)
        if not function.arguments and (yield from source.peek_match(_JSON, NAME_LIMIT, _MAY_BE_JSON.fullmatch)):
            result = yield from TaggedJson("<function=", "</function>", name=function.name)(source, consumed)
            yield from _consume_close(source, consumed)
            return result
        marker = yield from source.consume_marker(_TAGS)
        match marker.lower():
            case tag if tag in _PARAMETER_TAGS:
                consumed.append(marker)
                function.fix(*_PARAMETER_TAGS[tag])
                yield from _read_parameter(source, consumed, function)
            case "</function>":
                consumed.append(marker)
                yield from _consume_close(source, consumed)
                return function.build_result()
            case "</tool_call>":
                consumed.append(marker)
                return function.build_result("missing-inner-tag")
            case "</parameter>":
                consumed.append(marker)
                function.fix("missing-inner-tag")
            case "<function=" if not function.keys and (
                yield from _consume_name_again(source, consumed, marker, function.name)
            ):
                function.fix("text-in-tag")
            case "<tool_call>" | "<function=" | "<function ":
                source.push_back(marker)
                return function.build_result("missing-inner-tag", "missing-close-tag")
            case _ if not char or source.consume_cut_marker("</function>", consumed):
                result = function.build_unclosed_result(source, has_begun_to_close=char != "")
                if result.calls:
                    return result
                raise BodyError
            case _ if not (
                (yield from read_named_value(source, consumed, function))
                or (yield from _read_element(source, consumed, function))
            ):
                start = len(consumed)
                yield from source.skip_to(_TAGS, consumed)
                text = "".join(consumed[start:])
                if not (source.at_line_start or source.after_call or function.arguments or "\n" in text):
                    raise BodyError(result=TEXT)  # a sentence about the tags
                function.add_loose_text(text)
                if match := _UNKNOWN_ELEMENT.match(text):
                    wrong = f"{match.group()!r} in the call of {function.name!r}"
                    function.problem = f"{wrong} is not a parameter: expected <parameter=NAME>"
                if (yield from source.is_next(_PARAMETER_CLOSE)):
                    function.problem = f"a parameter of {function.name!r} has no opening tag: expected <parameter=NAME>"


def _consume_name_again(source: StreamBuffer, consumed: list[str], marker: str, name: str) -> Reader[bool]:
    """If the tag ``<function=NAME>`` of the current call is repeated, consume it and return True. ``marker`` is its
    start, which was just consumed."""
    rest = get_marker_set(f"{name}>")
    if not (yield from source.is_next(rest)):
        return False
    consumed.append(marker)
    yield from source.consume_marker(rest, consumed)
    return True


def _read_parameter(source: StreamBuffer, consumed: list[str], function: _Function) -> Reader[None]:
    is_usual = _WHOLE_KEY.match(source.text, source.position)
    tag = None if is_usual else (yield from source.peek_match(_OPEN_TAG, NAME_LIMIT, _MAY_BE_OPEN_TAG.fullmatch))
    if tag is not None and function.expects(tag[1]):
        source.consume_match(tag, consumed)
        function.fix("value-in-attribute" if tag[2] else "misspelt-inner-tag")
        if tag[2]:
            function.add(tag[1], tag[2])
            return
        key: str | None = tag[1]
    else:
        key = yield from consume_tag_name(source, consumed)
    if not key:
        raise BodyError(f"a parameter of {function.name!r} has no name: expected <parameter=NAME>")
    if empty := _EMPTY_ELEMENT.fullmatch(key):
        key, double, single = empty.groups()
        attribute_value = double or single
        function.add(key, attribute_value or "")
        function.fix("value-in-attribute" if attribute_value else "misspelt-inner-tag")
        return
    if typed := _TYPED_NAME.fullmatch(key):
        key = typed[1]
        function.fix("attribute-syntax")
    if key.lower().startswith("parameter=") and key[len("parameter=") :] and not function.has_parameter(key):
        key = key[len("parameter=") :]
        function.fix("misspelt-inner-tag")
    function.check_name(key, "<parameter=NAME>")
    function.keys.add(key)

    def may_begin(source: StreamBuffer, tag: str) -> Reader[bool]:
        """Return whether an opening tag in a value without a closing tag begins the next parameter."""
        if tag.lower() == "parameter=":
            return False  # without its bracket, the tag looks like text of the value
        ahead: list[str] = []
        next_key = yield from consume_tag_name(source, ahead)
        source.push_back("".join(ahead))
        return next_key is not None and function.may_begin(next_key)

    text, closing = yield from read_value(_value, source, consumed, may_begin)
    if not closing:
        function.fix("missing-inner-tag")
        text = text if "<parameter" in text.lower() else _SECTION_CLOSE.sub("", text)
        text = remove_broken_close(text, key, ("</parameter>",), (f"</parameter={key}>",))
        function.check_unclosed(key, text, ("</parameter>", "</function>"))
        if not text.startswith("\n") or text.endswith("\n\n"):
            text = strip_line_break(text)
    if _DOUBLED_BRACKET.match(text) and not function.is_inline:
        function.fix("misspelt-inner-tag")
        text = text[1:]
    function.add(key, text, is_closed=closing != "")


def _read_element(source: StreamBuffer, consumed: list[str], function: _Function) -> Reader[bool]:
    """Parse ``<KEY>value</KEY>``, written instead of ``<parameter=KEY>``, if KEY is a parameter of the tool.
    ``</parameter>`` may also close the value. Return whether there was such an element."""
    ahead: list[str] = []
    yield from source.consume_until(">", NAME_LIMIT, ahead)
    tag = _ELEMENT.fullmatch("".join(ahead))
    key = tag[1] if tag is not None else ""
    if function.tool is None or not function.has_parameter(key):
        source.push_back("".join(ahead))
        return False
    value: list[str] = []
    closing = yield from source.read_until(get_marker_set(f"</{key}>", *_ELEMENT_ENDS), value)
    consumed.extend([*ahead, *value])
    text = "".join(value)
    if closing.lower() in _FUNCTION_ENDS or any(f"<{other}>" in text for other in function.tool.properties):
        function.problem = f"{key!r} of {function.name!r} is not closed: expected <parameter={key}>VALUE</parameter>"
    if closing.lower() in _FUNCTION_ENDS:
        source.push_back(closing)
    else:
        consumed.append(closing)
    if closing:
        function.fix("misspelt-inner-tag")
        function.add(key, text)
    return True


def consume_tag_name(source: StreamBuffer, consumed: list[str]) -> Reader[str | None]:
    """Consume ``NAME>`` or ``name="NAME">``, the rest of a tag, and return the name. For other text, return None; some
    of the text may have been consumed."""
    text = yield from source.consume_until(">", NAME_LIMIT, consumed)
    if text is None or "\n" in text or "<" in text:
        return None
    text = text.strip()
    if text.lower().startswith("name="):
        text = text[5:]
    return text.strip().strip("\"'") or None


def find_open_name(source: BodySource) -> Reader[re.Match[str] | None]:
    """Return the match for the name of a known tool whose tag is unclosed or missing, before a parameter or the end of
    the call. Otherwise, return None. Nothing is consumed."""
    match = yield from source.peek_match(_OPEN_NAME, NAME_LIMIT, _MAY_BE_OPEN_NAME.fullmatch)
    return match if match is not None and source.tools.match(match[1]) is not None else None


def _consume_close(source: StreamBuffer, consumed: list[str]) -> Reader[None]:
    gap: list[str] = []
    yield from source.skip_space(gap)
    while (yield from source.consume_marker(_STRAY_CLOSES, gap)):
        yield from source.skip_space(gap)
    marker = yield from source.consume_marker(_CLOSE)
    if marker:
        consumed.extend([*gap, marker])
    else:
        for closing in (*_CLOSE.literals, *_STRAY_CLOSES.literals):
            source.consume_cut_marker(closing, gap)
        if source.final and source.is_empty:
            consumed.extend(gap)
        else:
            source.push_back("".join(gap))
