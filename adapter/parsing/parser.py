"""The public parser, which converts a model's text, whole or streamed, to events."""

from __future__ import annotations

from functools import partial

from adapter.core.argument_checks import NONE, PathLike, check_types, format_value
from adapter.core.errors import UsageError
from adapter.core.events import Event
from adapter.core.turn import Turn
from adapter.parsing.format import Format
from adapter.parsing.formats import FORMATS, get_format
from adapter.parsing.marker_tables import map_reasoning_markers
from adapter.parsing.parse_policy import SAFE, ParsePolicy, get_policy
from adapter.parsing.segmenter import Segmenter
from adapter.parsing.unrecognized_calls import find_unread_calls
from adapter.tools.call_normalization import normalize_call
from adapter.tools.tool_set import ToolDefinitions, ToolSet


class Parser:
    """Converts text that arrives in chunks to events.

    Args:
        format: The expected format: its name, the path of a format file (``.toml``), or the result of `adapter.derive`.
            None accepts every format. Calls in other formats' markers are also parsed, unless the policy is ``strict``.
        tools: The callable tools. Names and arguments of calls are matched to their definitions.
        generation_prompt: The end of the prompt, which the chat template writes before the output and which may open
            reasoning; None if unknown. If it is unknown and the format always opens reasoning there, the output is
            assumed to begin in reasoning, until an answer ends without closing it.
        turn: Any string that distinguishes this turn from others in the conversation, so that call ids differ.
        policy: Rules for how a call must be written and where it may appear: ``strict``, ``safe``, ``lenient``, or a
            `ParsePolicy`.
        stream_arguments: Whether to also emit each call's arguments as `ToolCallDelta` events, while the model writes
            them if possible, otherwise before the call. The arguments of a short call are one event. A call whose
            arguments need a repair after their first 100 characters is invalid.

    `feed` and `close` never raise an error because of the text. Apart from the split of adjacent deltas, the events do
    not depend on how the text was split. Raises UsageError for an unknown format, for text after `close`, and for an
    argument of `feed` that is not a str.
    """

    def __init__(
        self,
        format: str | PathLike | Format | None = None,
        tools: ToolDefinitions | None = None,
        *,
        generation_prompt: str | None = None,
        turn: str = "",
        policy: str | ParsePolicy = SAFE,
        stream_arguments: bool = False,
    ) -> None:
        check_types("Parser", generation_prompt=(generation_prompt, str, NONE), turn=(turn, str))
        tool_set = tools if isinstance(tools, ToolSet) else ToolSet(tools or ())
        formats = FORMATS.all if format is None else (get_format(format),)
        policy = get_policy(policy)
        self._segmenter = Segmenter(
            formats,
            tool_set,
            partial(normalize_call, tools=tool_set),
            policy,
            id_seed=turn,
            in_reasoning=_starts_in_reasoning(generation_prompt, formats),
            assumes_reasoning=generation_prompt is None,
            stream_arguments=stream_arguments,
            fallback=FORMATS.all if format is not None and policy.allow_other_formats else (),
        )
        self._is_closed = False

    def feed(self, text: str) -> list[Event]:
        """Return the events that ``text`` completes. A call is returned as one event, as soon as it is closed."""
        if self._is_closed:
            raise UsageError("this parser is closed; make a new Parser for the next turn")
        if not isinstance(text, str):
            raise UsageError(_explain_type_error(text))
        return self._segmenter.feed(text)

    def close(self, finish_reason: str | None = None) -> list[Event]:
        """Return the last events. ``finish_reason``: the server's reason. A call that was cut off by a length limit is
        not accepted."""
        if self._is_closed:
            return []
        self._is_closed = True
        return self._segmenter.close(finish_reason)


def parse(
    text: str,
    tools: ToolDefinitions | None = None,
    format: str | PathLike | Format | None = None,
    finish_reason: str | None = None,
    *,
    generation_prompt: str | None = None,
    turn: str = "",
    policy: str | ParsePolicy = SAFE,
) -> Turn:
    """Parse one complete answer. For the arguments and guarantees, see `Parser`. `Turn.rejected` also contains text
    that looks like a call in no known format."""
    tool_set = tools if isinstance(tools, ToolSet) else ToolSet(tools or ())
    parser = Parser(format, tool_set, generation_prompt=generation_prompt, turn=turn, policy=policy)
    events = [*parser.feed(text), *parser.close(finish_reason)]
    answer = Turn.from_events(events)
    unread = find_unread_calls(answer, tool_set)
    return Turn.from_events([*events, *unread]) if unread else answer


def _explain_type_error(value: object) -> str:
    """Return the error message for a ``value`` that is passed as text but is not a str."""
    match value:
        case None:
            advice = "a response without content has None: pass message.content or ''"
        case bytes() | bytearray() | memoryview():
            advice = (
                "decode it first: a complete answer with .decode('utf-8', 'replace'), pieces of a stream with "
                "codecs.getincrementaldecoder('utf-8')('replace')"
            )
        case _:
            advice = "pass its text: choices[0].message.content of a chat completion, delta.content of a stream event"
    return f"expected the model's text as str, got {format_value(value)}; {advice}"


def _starts_in_reasoning(generation_prompt: str | None, formats: tuple[Format, ...]) -> bool:
    """Return whether the output begins inside reasoning, according to the prompt or, if it is unknown, the format."""
    if generation_prompt is None:
        return len(formats) == 1 and formats[0].starts_in_reasoning
    prompt = generation_prompt.lower()
    return any(
        prompt.rfind(opening) > prompt.rfind(closing) for opening, closing in map_reasoning_markers(formats).items()
    )
