"""Reads a model's text, whole or as it streams: the public face of the formats engine."""

from __future__ import annotations

from functools import partial

from adapter.core.arguments import NONE, check_types, shown
from adapter.core.errors import UsageError
from adapter.core.events import Event
from adapter.core.turn import Turn
from adapter.parsing.format import Format
from adapter.parsing.formats import FORMATS, get_format
from adapter.parsing.formats.cross_format import OTHERS
from adapter.parsing.marker_tables import reasoning_markers
from adapter.parsing.parse_policy import SAFE, ParsePolicy, get_policy
from adapter.parsing.segmenter import Segmenter
from adapter.tools.call_resolution import normalize_call
from adapter.tools.tool import ToolDefinitions, ToolSet


class Parser:
    """Takes text in any pieces and gives events.

    ``format``: the format to read, by its name or as `adapter.derive` gives it, or None to recognise every one. Where
    one is told, calls in the markers of the others are read, too, unless the policy is ``strict``.
    ``tools``: what may be called; with it, names, argument names and types are
    matched to their definitions. ``generation_prompt``: what the chat template put
    before the output, None when that is not known; it may have opened reasoning. A format that
    always has it opened is then taken to have done so, until an answer that ends without closing it
    says that it was one. ``turn``: any text that tells this turn from others of the conversation, so
    that call ids differ. ``policy``: which text may become a call, ``strict``, ``safe`` or ``lenient``,
    or a `ParsePolicy`. ``stream_arguments``: also give each call's
    arguments as `ToolCallDelta` events, as they are written where that is possible, at the latest before
    the call itself; a call whose arguments had to be mended after that is invalid.

    `feed` and `close` never raise on any text, and the events do not depend on how
    the text was split (adjacent deltas joined). Raises UsageError for an unknown
    format, and when fed after it was closed, or something else than text.
    """

    def __init__(
        self,
        format: str | Format | None = None,
        tools: ToolDefinitions | None = None,
        *,
        generation_prompt: str | None = None,
        turn: str = "",
        policy: str | ParsePolicy = SAFE,
        stream_arguments: bool = False,
    ) -> None:
        check_types("Parser", generation_prompt=(generation_prompt, str, NONE), turn=(turn, str))
        known = tools if isinstance(tools, ToolSet) else ToolSet(tools or ())
        formats = FORMATS.all if format is None else (get_format(format),)
        policy = get_policy(policy)
        self._segmenter = Segmenter(
            formats,
            known,
            partial(normalize_call, tools=known),
            policy,
            id_seed=turn,
            in_reasoning=_opens_reasoning(generation_prompt, formats),
            assumes_reasoning=generation_prompt is None,
            stream_arguments=stream_arguments,
            others=None if format is None or not policy.allow_other_formats else OTHERS,
        )
        self._is_closed = False

    def feed(self, text: str) -> list[Event]:
        """The events that ``text`` completes. A call comes whole, the moment it is closed."""
        if self._is_closed:
            raise UsageError("this parser is closed; make a new Parser for the next turn")
        if not isinstance(text, str):
            raise UsageError(_no_text(text))
        return self._segmenter.feed(text)

    def close(self, finish_reason: str | None = None) -> list[Event]:
        """The last events. ``finish_reason``: the server's, so that a call cut for length is never taken as whole."""
        if self._is_closed:
            return []
        self._is_closed = True
        return self._segmenter.close(finish_reason)


def parse(
    text: str,
    tools: ToolDefinitions | None = None,
    format: str | Format | None = None,
    finish_reason: str | None = None,
    *,
    generation_prompt: str | None = None,
    turn: str = "",
    policy: str | ParsePolicy = SAFE,
) -> Turn:
    """One whole answer, read. The arguments are those of `Parser`; so are the promises."""
    parser = Parser(format, tools, generation_prompt=generation_prompt, turn=turn, policy=policy)
    return Turn.from_events([*parser.feed(text), *parser.close(finish_reason)])


def _no_text(given: object) -> str:
    """What a developer should have passed."""
    match given:
        case None:
            advice = "an answer without content has None there: pass message.content or ''"
        case bytes() | bytearray() | memoryview():
            advice = (
                "decode it first: a whole answer with .decode('utf-8', 'replace'), pieces of a stream with "
                "codecs.getincrementaldecoder('utf-8')('replace')"
            )
        case _:
            advice = "pass its text: of a chat completion choices[0].message.content, of a stream's event delta.content"
    return f"expected the model's text as str, got {shown(given)}; {advice}"


def _opens_reasoning(generation_prompt: str | None, formats: tuple[Format, ...]) -> bool:
    """Whether the output begins inside reasoning: by the prompt where it is known, else by the told format's habit."""
    if generation_prompt is None:
        return len(formats) == 1 and formats[0].starts_in_reasoning
    prompt = generation_prompt.lower()
    return any(prompt.rfind(opening) > prompt.rfind(closing) for opening, closing in reasoning_markers(formats).items())
