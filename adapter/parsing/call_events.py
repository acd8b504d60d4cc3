"""From a reading to events: which calls count under the policy, and what the model hears of those that do not."""

from __future__ import annotations

import json
import re

from adapter.core.events import Event, InvalidToolCall, MarkupDelta, ToolCall
from adapter.core.json.strict import is_encodable, replace_surrogates
from adapter.core.repair_codes import REPAIRS
from adapter.parsing.format import BodyResult, Format
from adapter.parsing.parse_policy import ParsePolicy
from adapter.tools.call_shapes import DecodedCall, Normalise
from adapter.tools.tool import ToolSet

try:  # as `random` does: hashlib loads OpenSSL, which takes as long as to read ten texts
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

_TOOL_NAME = re.compile(r"[a-z_][\w.-]*")  # `rename_function`, not the `Ada` of an answer in JSON
_placeholder = re.compile(r"<([\w -]+)>|\.\.\.|…|\{\{.*\}\}")


class CallEventFactory:
    """Those of one turn. ``id_seed`` makes the ids of its calls differ from other turns'."""

    def __init__(
        self, format: Format, tools: ToolSet, normalise: Normalise, policy: ParsePolicy, *, id_seed: str
    ) -> None:
        self._format, self._tools, self.normalise, self._policy = format, tools, normalise, policy
        self._id_seed = id_seed
        self._count = 0

    def events_for(self, reading: BodyResult, raw: str) -> list[Event]:
        """What ``raw``, which stands in its format's markers, amounts to."""
        if reading.error is not None:
            return [InvalidToolCall(raw, reading.error)]
        if not reading.calls:
            return [MarkupDelta(raw)]
        has_surrogates = not is_encodable(raw)
        ends = [call.end for call in reading.calls[:-1]] + [len(raw)]
        events: list[Event] = []
        start = 0
        for call, end in zip(reading.calls, ends, strict=True):
            stop = start if end is None else end
            events.append(self._tool_call(call, reading.fixes, raw[start:stop], has_surrogates))
            start = stop
        return events

    def rejection_reason(self, reading: BodyResult, *, is_marked: bool, is_first: bool) -> str:
        """Why what looks like calls is text all the same: a key of `REJECTION_REASONS`, "" when it may be calls.

        ``is_first``: nothing stands before it. Then a call of no tool of the session whose name could be a
        tool's is no text, so that the model hears that there is no such tool.
        """
        if not is_marked and self._policy.unmarked == "none":
            return "no-markers"
        if _is_example(reading):
            return "placeholder"
        unknown = self._unknown(reading)
        return "unknown-tool" if unknown and not (is_first and _TOOL_NAME.fullmatch(unknown)) else ""

    def held_events(self, reading: BodyResult, raw: str, *, is_marked: bool) -> list[Event]:
        """What ``raw``, where `why_text` has no objection, amounts to if nothing but calls follows."""
        unknown = self._unknown(reading)
        if unknown:
            return [InvalidToolCall(raw, self._tools.explain_unknown(unknown), unknown)]
        events = self.events_for(reading, raw)
        if is_marked or self._policy.unmarked != "reads":
            return events
        return [self._demanding_markers(event) for event in events]

    def next_id(self, raw: str) -> str:
        """The id of the next call, if ``raw`` is its text."""
        return make_call_id(self._id_seed, self._count + 1, raw)

    def _unknown(self, reading: BodyResult) -> str:
        """The first name that is no tool of this session; "" when all are, or when it is not known what there is."""
        names = (call.name for call in reading.calls if self._tools and self._tools.match(call.name) is None)
        return next(names, "")

    def _demanding_markers(self, event: Event) -> Event:
        """``event``, or where it calls a tool that changes something, how to write that call."""
        if not isinstance(event, ToolCall):
            return event
        tool = self._tools.match(event.name)
        if tool is None or tool.effect == "read":
            return event
        right = self._format.encode_calls([(event.name, event.arguments)])
        error = f"{event.name} changes something, so its call must have its markers and no code fence. Write it so:"
        return InvalidToolCall(event.raw, f"{error}\n{right}", event.name)

    def _tool_call(
        self, call: DecodedCall, fixes: tuple[str, ...], raw: str, has_surrogates: bool
    ) -> ToolCall | InvalidToolCall:
        """``raw`` is empty where calls share a value: ``has_surrogates`` is said of all of it."""
        name, arguments, more = self.normalise(call.name, call.arguments)
        self._count += 1
        unique = dict.fromkeys((*fixes, *call.fixes, *more))
        if has_surrogates and not is_encodable(json.dumps([name, arguments], ensure_ascii=False)):
            name, arguments = replace_surrogates([name, arguments])
            unique["lone-surrogate"] = None
        if unique and not self._policy.repairs:
            faults = "; ".join(REPAIRS[fix] for fix in unique)
            return InvalidToolCall(raw, f"the call must be written without faults, and {faults}. Write it again.", name)
        return ToolCall(make_call_id(self._id_seed, self._count, raw), name, arguments, raw, tuple(unique))


def make_call_id(seed: str, number: int, raw: str) -> str:
    """``call_`` and 24 letters or digits, the form of OpenAI's ids: the same for the same turn, number and text.

    Of a long text its ends and length stand for all of it.
    """
    if len(raw) > 4096:
        raw = f"{raw[:2048]}{len(raw)}{raw[-2048:]}"
    digest = int.from_bytes(blake2b(f"{seed}\0{number}\0{raw}".encode("utf-8", "replace"), digest_size=18).digest())
    digits: list[str] = []
    for _ in range(6):
        digest, two_pairs = divmod(digest, _PAIRS * _PAIRS)
        digits += _TWO_DIGITS[two_pairs % _PAIRS], _TWO_DIGITS[two_pairs // _PAIRS]
    return "call_" + "".join(digits)


_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_TWO_DIGITS = [low + high for high in _DIGITS for low in _DIGITS]
_PAIRS = len(_TWO_DIGITS)


def _is_example(reading: BodyResult) -> bool:
    """Whether a call without markers only shows how one looks: with placeholders where values go."""
    if not {"no-markers", "code-fence"} & {*reading.fixes}:
        return False  # the told format's own way to call
    arguments = [item for call in reading.calls for item in call.arguments.items()]
    return any(isinstance(value, str) and _is_placeholder(key, value) for key, value in arguments)


def _is_placeholder(key: str, value: str) -> bool:
    """``...``, ``{{path}}``, ``<your command>``, or ``<path>`` for a path; not ``<br>`` or another tag."""
    found = _placeholder.fullmatch(value)
    return found is not None and (found[1] is None or " " in found[1] or found[1].lower() in key.lower())
