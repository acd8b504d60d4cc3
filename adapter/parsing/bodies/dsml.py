"""DSML, the elements in which DeepSeek V3.2 and later write calls; the releases differ in a few words.

::

    <｜DSML｜function_calls>                                    V3.2; V4: tool_calls; V4.1: " calls"
    <｜DSML｜invoke name="NAME">                                V4.1: a space before each word
    <｜DSML｜parameter name="KEY" string="true">value</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜function_calls>

``string="false"`` says that the value is JSON. All spellings are read, whatever
the told release is. Models also leave out the underscore, double the bars or
write ASCII ones. GigaChat 3.5 writes the same elements as GCML.

In place of the section and the call's tag DeepSeek V4 writes ``<function>`` with the name in an element now and then,
which counts at the beginning of a line, for a tool of the session.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

from adapter.core.events import Json
from adapter.parsing.bodies.call_section import CallSection
from adapter.parsing.bodies.xml_invoke import XmlInvokeReader
from adapter.parsing.bodies.xml_invoke_tags import XmlInvokeTags, section_encoder
from adapter.parsing.encoding import result_encoder
from adapter.parsing.format import TEXT, BodyResult, CallOpener, Format, ReadContext
from adapter.parsing.marker_set import markers_for
from adapter.parsing.stream_buffer import Reader, StreamBuffer, skip_space, take_marker, take_until

END_OF_SENTENCE = "<｜end▁of▁sentence｜>"

FUNCTION = "<function>"

NAME_LIMIT = 200
"""Characters of a name in an element; more is prose."""

_name_opens, _name_closes, _parameter = map(markers_for, ("<name>", "/name>", "<parameter name="))
_BARS = ("｜", "｜｜", "|", "||", "‖")
_SECTIONS = (
    "function_calls",
    "tool_calls",
    " calls",
    "functioncalls",
    "toolcalls",
    "calls",
    " function_calls",
    " tool_calls",
)
_OFFICIAL = ("function_calls>", "tool_calls>", " calls>", "invoke", " invoke")


def _tags(language: str, words: tuple[str, ...], *, opening: str = "<", end: str = "") -> tuple[str, ...]:
    return tuple(f"{opening}{bar}{language}{bar}{word}{end}" for bar in _BARS for word in words)


@lru_cache
def _all_tags(language: str) -> XmlInvokeTags:
    return XmlInvokeTags(
        call=_tags(language, ("invoke", " invoke")),
        call_close=_tags(language, ("invoke", " invoke"), opening="</", end=">"),
        parameter=_tags(language, ("parameter", " parameter")),
        parameter_close=_tags(language, ("parameter", " parameter"), opening="</", end=">"),
        section=_tags(language, _SECTIONS, end=">"),
        section_close=_tags(language, _SECTIONS, opening="</", end=">"),
        stray_call_close=("</invoke>",),
    )


@lru_cache
def _openers(language: str) -> tuple[CallOpener, ...]:
    tags = _all_tags(language)
    official = {f"<｜{language}｜{word}" for word in _OFFICIAL}
    section = CallSection(
        opens=tags.section,
        closes=tags.section_close,
        call_opens=tags.call,
        read_call=XmlInvokeReader(tags),
        misspelt=[tag for tag in (*tags.section, *tags.call) if tag not in official],
        may_be_json=True,
    )
    return (*section.openers, CallOpener(FUNCTION, partial(_read_function, _function_body(language))))


@lru_cache
def _function_body(language: str) -> XmlInvokeReader:
    """Reads the parameters after ``<function>`` and a name, whichever closing tags they have."""
    tags = _all_tags(language)
    return XmlInvokeReader(
        tags._replace(
            call=(FUNCTION,),
            call_close=("</function>",),
            parameter=("<parameter", *tags.parameter),
            parameter_close=("</parameter>", *tags.parameter_close),
            section=(),
            stray_call_close=(*tags.call_close, *tags.stray_call_close),
        )
    )


def _read_function(
    body: XmlInvokeReader, source: StreamBuffer, span: list[str], context: ReadContext
) -> Reader[BodyResult]:
    if not (context.at_line_start or context.after_call):
        return TEXT
    context.may_be_text = True
    ahead: list[str] = []
    yield from skip_space(source, ahead)
    ahead.append((yield from take_marker(source, _name_opens)))
    name = (yield from take_until(source, "<", NAME_LIMIT, ahead)) if ahead[-1] else None
    closes = yield from take_marker(source, _name_closes)
    ahead.append(closes)
    yield from skip_space(source, ahead)
    parameter = yield from take_marker(source, _parameter)
    source.push_back(parameter)
    if not name or not closes or not parameter or context.tools.match(name) is None:
        source.push_back("".join(ahead))
        return TEXT  # also where a model shows how a tool is described to it
    span.extend(ahead)
    return (yield from body.read_named(name, FUNCTION, source, span, context)).repaired("misspelt-open-tag")


def _first(tags: Sequence[str], word: str) -> tuple[str, ...]:
    """``tags`` with the spelling of ``word`` in front, which is the one to write."""
    own = next(tag for tag in tags if tag.removesuffix(">").endswith(f"｜{word}"))
    return (own, *(tag for tag in tags if tag != own))


def dsml_format(
    name: str,
    aliases: tuple[str, ...],
    *,
    section: str,
    gap: str = "",
    models: tuple[str, ...],
    result: str,
    language: str = "DSML",
) -> Format:
    """The format of one release: ``section`` names what holds its calls, ``gap`` stands before the other words.

    ``result``: what a tool's result is written in, with ``{}`` for it and ``{name}`` for the tool.
    ``language``: the word between the bars.
    """
    known = _all_tags(language)
    tags = XmlInvokeTags(
        call=_first(known.call, f"{gap}invoke"),
        call_close=_first(known.call_close, f"{gap}invoke"),
        parameter=_first(known.parameter, f"{gap}parameter"),
        parameter_close=_first(known.parameter_close, f"{gap}parameter"),
        section=_first(known.section, section),
        section_close=_first(known.section_close, section),
    )

    before, _, after = result.partition("{}")
    return Format(
        name=name,
        aliases=aliases,
        openers=_openers(language),
        encode_calls=section_encoder(tags, _is_string),
        encode_result=result_encoder(before, after),
        stray_closers=(*known.section_close, *known.call_close, *known.parameter_close, *known.stray_call_close),
        end_tokens=(END_OF_SENTENCE,),
        result_markers=(before.partition(" name=")[0],),
        stop_sequences=(END_OF_SENTENCE,),
        special_tokens=(f"｜{language}｜", "<think>", "</think>"),
        model_patterns=models,
        template_fingerprints=(
            tags.section[0],
            *(f"{{{{ dsml_token }}}}{section}>", f"dsml_token + '{section}>", f'dsml_token + "{section}>'),
        ),
    )


def _is_string(value: Json) -> str:
    return f' string="{"true" if isinstance(value, str) else "false"}"'
