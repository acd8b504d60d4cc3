"""Parse calls written as two labeled lines: the tool's name, and the arguments as JSON.

::

    Action: read_file                                  ✿FUNCTION✿: read_file
    Action Input: {"path": "a.py"}                     ✿ARGS✿: {"path": "a.py"}
    Observation: ...                                   ✿RESULT✿: ...

A line of text may replace the JSON if the tool has only one parameter that must be given, a string. The model must
stop at the third label. Any text that it writes after this label is invented.
"""

from __future__ import annotations

import re

from adapter.parsing.bare_json import FENCE_END, UntaggedJson
from adapter.parsing.format import CUT_OFF, TEXT, BodyReader, BodyResult, BodySource
from adapter.parsing.marker_set import MarkerSet, get_marker_set
from adapter.parsing.stream_buffer import NAME_LIMIT, Reader, StreamBuffer
from adapter.tools.call_shapes import DecodedCall
from adapter.tools.coercion import list_types
from adapter.tools.tool import Tool

LANGUAGE_LIMIT = 20
"""Maximum length of the language name of a code fence around the arguments."""

_fence = get_marker_set("```")
_LANGUAGE = re.compile(r"[a-zA-Z]*(?=[^a-zA-Z])")
_is_letters = re.compile("[a-zA-Z]*").fullmatch
_NAME = re.compile(r"[ \t]*`?([\w.:/-]+)`?[ \t]*")


def build_labeled_reader(arguments: str, result_label: str) -> BodyReader:
    """Return a parser of the name in the rest of its line, and of the arguments after their label."""
    label, line_end = get_marker_set(arguments), get_marker_set("\n", arguments)

    def read(source: BodySource, span: list[str]) -> Reader[BodyResult]:
        if not source.at_line_start or not (yield from source.peek_marker(line_end, NAME_LIMIT)):
            return TEXT
        ends = ("\n" + span[-1], "\n" + result_label)
        line: list[str] = []
        ending = yield from source.read_until(line_end, line)
        if ending != "\n":
            source.push_back(ending)
            ending = ""
        span.extend([*line, ending])
        name_match = _NAME.fullmatch("".join(line).rstrip("\r"))
        if name_match is None or (source.tools and not source.tools.match(name_match.group(1))):
            return TEXT
        yield from source.skip_space(span)
        if not (yield from source.take_marker(label, span)):
            return TEXT
        yield from source.skip_space(span)
        is_fenced = (yield from source.take_marker(_fence, span)) != ""
        language = is_fenced and (yield from source.peek_match(_LANGUAGE, LANGUAGE_LIMIT, _is_letters))
        if language:
            source.take_match(language, span)
        json_ends = (*ends, FENCE_END) if is_fenced else ends
        read_json = UntaggedJson("arguments", after_marker=True, name=name_match.group(1), ends=json_ends)
        result = yield from read_json(source, span)
        if is_fenced and (yield from source.peek_after_space(_fence))[1]:
            yield from source.take_through(_fence, span)
            result = result.with_fixes("code-fence")
        if not result.not_a_call:
            return result
        cut = source.final and source.is_empty
        tool = source.tools.match(name_match.group(1))
        if cut and not source.was_cut and tool is not None and not tool.properties:
            return BodyResult((DecodedCall(name_match.group(1), {}),), ("no-arguments",))
        if not cut and (key := _find_only_text_parameter(tool)):
            text = yield from _take_line(source, span, get_marker_set(*ends, "\n"))
            if text:
                return BodyResult((DecodedCall(name_match.group(1), {key: text}),), ("positional-arguments",))
        return BodyResult(error=CUT_OFF if cut else f"after {arguments!r} must come one JSON object with the arguments")

    return read


def _find_only_text_parameter(tool: Tool | None) -> str:
    """Return the parameter that text without a name can only be: the single one that must be given, a string."""
    keys = (tool.required or tuple(tool.properties)) if tool is not None else ()
    is_text = len(keys) == 1 and tool is not None and "string" in list_types(tool.properties.get(keys[0], {}))
    return keys[0] if is_text else ""


def _take_line(source: StreamBuffer, span: list[str], ends: MarkerSet) -> Reader[str]:
    """Take the rest of the line, and return it, if the answer or the call ends with it. Otherwise take nothing.

    ``ends``: the markers that end the call, and a line break.
    """
    line: list[str] = []
    marker = yield from source.read_until(ends, line)
    space = [marker]
    if marker == "\n" and not (yield from source.skip_space(space)):
        marker = ""
    is_end = marker != "\n" and (marker or not source.was_cut)
    source.push_back("".join(space) if is_end else "".join([*line, *space]))
    if not is_end:
        return ""
    span.extend(line)
    text = "".join(line).strip()
    return text[1:-1] if text[:1] == '"' == text[-1:] and text.count('"') == 2 else text
