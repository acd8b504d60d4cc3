"""Parse DSML, the elements that DeepSeek V3.2 and later releases write calls with. The releases differ in a few words.

::

    <｜DSML｜function_calls>                                    V3.2; V4: tool_calls; V4.1: " calls"
    <｜DSML｜invoke name="NAME">                                V4.1: a space before each word
    <｜DSML｜parameter name="KEY" string="true">value</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜function_calls>

``string="false"`` marks a JSON value. All spellings are parsed, whichever release is expected. Models also omit the
underscore, misspell the words of sections and closing tags, double the bars or write ASCII bars. GigaChat 3.5 writes
the same elements with GCML instead of DSML.

DeepSeek V4 sometimes replaces the tags of the section and the call with ``<function>`` and an element with the name.
This counts only at the start of a line, and for one of the session's tools.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache, partial

from adapter.core.events import Json
from adapter.parsing.bodies.call_section import CallSection
from adapter.parsing.bodies.xml_invoke import WORD_LIMIT, XmlInvokeReader
from adapter.parsing.bodies.xml_invoke_tags import XmlInvokeTags, build_section_encoder
from adapter.parsing.call_encoders import build_result_encoder
from adapter.parsing.format import TEXT, BodyResult, BodySource, CallOpener, Format
from adapter.parsing.marker_set import MarkerSet, get_marker_set
from adapter.parsing.stream_buffer import NAME_LIMIT, Reader

END_OF_SENTENCE = "<｜end▁of▁sentence｜>"

FUNCTION = "<function>"

_WORD = re.compile(r" ?[a-z_]+")
_name_opens, _name_closes, _parameter = map(get_marker_set, ("<name>", "/name>", "<parameter name="))
_BARS = ("｜", "｜｜", "|", "||", "‖", " | ", " ｜ ")
_SECTIONS = (
    "function_calls", "tool_calls", " calls", "functioncalls", "toolcalls", "calls", " function_calls", " tool_calls",
    "tool_use",
)  # fmt: skip
_OFFICIAL = ("function_calls>", "tool_calls>", " calls>", "invoke", " invoke")


def _build_tags(language: str, words: tuple[str, ...], *, opening: str = "<", end: str = "") -> tuple[str, ...]:
    return tuple(f"{opening}{bar}{language}{bar}{word}{end}" for bar in _BARS for word in words)


def _build_opening_tags(language: str, word: str) -> tuple[str, ...]:
    """Return the possible starts of an opening tag, including the official spellings without their bracket."""
    tags = _build_tags(language, (word, f" {word}"))
    return (*tags, *(tag[1:] for tag in tags[:2]))


@lru_cache
def _build_all_tags(language: str) -> XmlInvokeTags:
    closes = _build_tags(language, ("invoke", " invoke"), opening="</", end=">")
    return XmlInvokeTags(
        call=_build_opening_tags(language, "invoke"),
        call_close=(*closes, *closes[:2]),
        parameter=_build_opening_tags(language, "parameter"),
        parameter_close=_build_tags(language, ("parameter", " parameter"), opening="</", end=">"),
        section=(*_build_tags(language, _SECTIONS, end=">"), *_build_tags(language, _SECTIONS, end="\n")),
        section_close=2 * _build_tags(language, _SECTIONS, opening="</", end=">"),
        stray_call_close=("</invoke>",),
        broken_close=_build_tags(language, ("",), opening="</"),
    )


@lru_cache
def _build_openers(language: str) -> tuple[CallOpener, ...]:
    tags = _build_all_tags(language)
    official = {f"<｜{language}｜{word}" for word in _OFFICIAL}
    section = CallSection(
        opens=tags.section,
        closes=tags.section_close,
        call_opens=tags.call,
        read_call=XmlInvokeReader(tags),
        misspelt=[tag for tag in (*tags.section, *tags.call) if tag not in official],
        may_be_json=True,
    )
    read_section = partial(_read_broken_tag, get_marker_set(*tags.call))
    broken_tags = (
        *(CallOpener(prefix, read_section) for prefix in _build_tags(language, ("",))),
        *(CallOpener(prefix, partial(_read_broken_tag, None)) for prefix in tags.broken_close),
    )
    return (
        *section.openers,
        *broken_tags,
        CallOpener(FUNCTION, partial(_read_function, _build_function_reader(language))),
    )


def _read_broken_tag(calls: MarkerSet | None, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse a tag whose word is misspelt. With ``calls``, it must be the opening tag of a section, directly before one
    of these markers. Without ``calls``, it must be a closing tag directly after a call."""
    ahead: list[str] = []
    word = yield from source.consume_until(">", WORD_LIMIT, ahead)
    if word is None and source.final and source.after_call and calls is None:
        word = source.consume_rest()  # cut within the word
        ahead.append(word)
    is_tag = word is not None and _WORD.fullmatch(word) and (source.after_call or (calls and source.at_line_start))
    if is_tag and (calls is None or (yield from source.peek_after_space(calls))[1]):
        consumed.extend(ahead)
        return BodyResult()
    source.push_back("".join(ahead))
    return TEXT


@lru_cache
def _build_function_reader(language: str) -> XmlInvokeReader:
    """Return a parser for the parameters after ``<function><name>NAME</name>``. It accepts the closing tags of DSML and
    of plain XML."""
    tags = _build_all_tags(language)
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


def _read_function(body: XmlInvokeReader, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    if not (source.at_line_start or source.after_call):
        return TEXT
    source.may_be_text = True
    ahead: list[str] = []
    yield from source.skip_space(ahead)
    opens = yield from source.consume_marker(_name_opens, ahead)
    name = (yield from source.consume_until("<", NAME_LIMIT, ahead)) if opens else None
    closes = yield from source.consume_marker(_name_closes, ahead)
    yield from source.skip_space(ahead)
    parameter = yield from source.consume_marker(_parameter)
    source.push_back(parameter)
    if not name or not closes or not parameter or source.tools.match(name) is None:
        source.push_back("".join(ahead))
        return TEXT  # for example a quotation of a tool's description
    consumed.extend(ahead)
    return (yield from body.read_named(name, FUNCTION, source, consumed)).with_fixes("misspelt-open-tag")


def _put_first(tags: Sequence[str], word: str) -> tuple[str, ...]:
    """Return ``tags`` with the spelling that uses ``word`` first, because encoders write the first spelling."""
    preferred = next(tag for tag in tags if tag.removesuffix(">").endswith(f"｜{word}"))
    return (preferred, *(tag for tag in tags if tag != preferred))


def build_dsml_format(
    name: str,
    aliases: tuple[str, ...],
    *,
    section: str,
    gap: str = "",
    models: tuple[str, ...],
    result: str,
    language: str = "DSML",
) -> Format:
    """Build the format of one DeepSeek release.

    Args:
        section: The word in the section's tags.
        gap: Text before each of the other words.
        models: Patterns for the models' names.
        result: Template for a tool result, in which ``{}`` is the content and ``{name}`` the tool.
        language: The word between the bars.
    """
    all_tags = _build_all_tags(language)
    tags = XmlInvokeTags(
        call=_put_first(all_tags.call, f"{gap}invoke"),
        call_close=_put_first(all_tags.call_close, f"{gap}invoke"),
        parameter=_put_first(all_tags.parameter, f"{gap}parameter"),
        parameter_close=_put_first(all_tags.parameter_close, f"{gap}parameter"),
        section=_put_first(all_tags.section, section),
        section_close=_put_first(all_tags.section_close, section),
    )

    before, _, after = result.partition("{}")
    return Format(
        name=name,
        aliases=aliases,
        openers=_build_openers(language),
        encode_calls=build_section_encoder(tags, _is_string),
        encode_result=build_result_encoder(before, after),
        stray_closers=(
            *all_tags.section_close,
            *all_tags.call_close,
            *all_tags.parameter_close,
            *all_tags.stray_call_close,
        ),
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
