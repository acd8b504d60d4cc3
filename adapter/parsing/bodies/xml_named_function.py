"""Parse the ``<function name="NAME">`` tag, which several model families share. The parameters differ.

::

    <function name="NAME"><param name="KEY">value</param></function>            MiniCPM5: `xml_invoke`; also <arg>
    <function name="NAME"><parameter name="KEY">value</parameter></function>    Qwen3-Coder, misspelt: `xml_function`

In MiniCPM5, strings other than plain words are in ``<![CDATA[...]]>``.
"""

from __future__ import annotations

import re

from adapter.parsing.bodies.bare_xml_function import read_unwrapped_function
from adapter.parsing.bodies.xml_function import read_xml_function
from adapter.parsing.bodies.xml_invoke import XmlInvokeReader
from adapter.parsing.bodies.xml_invoke_tags import XmlInvokeTags
from adapter.parsing.format import BodyResult, BodySource, CallOpener
from adapter.parsing.marker_set import MarkerSet
from adapter.parsing.stream_buffer import Reader

OPEN = "<function name="

TAGS = XmlInvokeTags(
    call=("<function",),
    call_close=("</function>",),
    parameter=("<param",),
    parameter_close=("</param>",),
    has_cdata=True,
)

PARAM_ELEMENTS = "param elements"
"""Member of `Format.body_variants`: the parameters are ``<param>`` elements."""

LOOK_AHEAD = 300
"""Number of characters after ``<function name=`` within which the first parameter must begin."""

_PARAMS = ("<param ", "<arg ", "<argument ")
_first_tag = MarkerSet(*_PARAMS, "<parameter", "</function>", "{")
_EMPTY_TAG = re.compile(r"[^<>]*/>")
_MAY_BE_EMPTY_TAG = re.compile(r"[^<>]*+")
_read_params = XmlInvokeReader(TAGS)


def read_function_tag(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse a call after ``<function name=``. Its first parameter shows which family wrote it."""
    marker = yield from source.peek_marker(_first_tag, LOOK_AHEAD)
    begins_call = source.at_line_start or source.after_call
    is_empty = begins_call and (
        (marker == "</function>" and source.expected_format is None)
        or (yield from source.peek_match(_EMPTY_TAG, LOOK_AHEAD, _MAY_BE_EMPTY_TAG.fullmatch)) is not None
    )
    if (
        marker.lower() not in _PARAMS
        and not is_empty
        and (marker == "<parameter" or PARAM_ELEMENTS not in source.body_variants)
    ):
        return (yield from read_unwrapped_function(source, consumed))
    return (yield from _read_with_params(source, consumed))


def read_wrapped_function(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse a call after ``<function `` inside another family's tag."""
    marker = yield from source.peek_marker(_first_tag, LOOK_AHEAD)
    return (yield from (_read_with_params if marker.lower() in _PARAMS else read_xml_function)(source, consumed))


def _read_with_params(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    source.push_back(consumed[-1][len(TAGS.call[0]) :])
    consumed[-1] = consumed[-1][: len(TAGS.call[0])]
    return (yield from _read_params(source, consumed))


OPENER = CallOpener(OPEN, read_function_tag)
