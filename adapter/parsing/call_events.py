"""Convert parsed calls to events, as the policy allows, and explain invalid calls to the model."""

from __future__ import annotations

import json
import re

from adapter.core.events import Event, InvalidToolCall, MarkupDelta, ToolCall
from adapter.core.json.strict import (
    encode_as_written,
    find_leading_zeros,
    find_repeated_values,
    is_encodable,
    replace_surrogates,
    to_plain_numbers,
)
from adapter.core.repair_codes import REPAIRS
from adapter.core.text.truncate import shorten
from adapter.parsing.argument_damage import find_damage
from adapter.parsing.format import BodyResult, Format
from adapter.parsing.parse_policy import ParsePolicy
from adapter.tools.argument_synonyms import CONTENT, NEW_TEXT, OLD_TEXT
from adapter.tools.decoded_json_calls import DecodedCall, Normalizer, expand_call
from adapter.tools.tool_set import ToolSet

try:  # like `random`: hashlib loads OpenSSL, which takes as long as parsing ten answers
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

_TOOL_NAME = re.compile(r"[a-z_][\w.-]*")  # matches `rename_function`, but not `Ada` in {"name": "Ada"}
_PLACEHOLDER = re.compile(r"<([\w -]+)>|\.\.\.|…|\{\{.*\}\}")
_PARTIAL = frozenset({"flat-arguments", "no-arguments", "name-as-key"})
"""Repairs of calls that lack arguments, or do not have them in a separate object."""
_TEXTS = frozenset((*OLD_TEXT, *NEW_TEXT, *CONTENT))


class CallEventFactory:
    """Builds the call events of one turn. ``id_seed`` makes the call ids differ between turns."""

    def __init__(
        self, format: Format, tools: ToolSet, normalize: Normalizer, policy: ParsePolicy, *, id_seed: str
    ) -> None:
        self._format, self._tools, self.normalize, self._policy = format, tools, normalize, policy
        self._id_seed = id_seed
        self._count = 0

    def build_events(self, result: BodyResult, raw: str) -> list[Event]:
        """Return the events for ``result``, which was parsed from ``raw``, a call's text including its markers."""
        if not result.calls:
            return [MarkupDelta(raw) if result.error is None else InvalidToolCall(raw, result.error)]
        has_surrogates = not is_encodable(raw)
        calls = self._expand_calls(result)
        ends = [call.end for call in calls[:-1]] + [len(raw)]
        events: list[Event] = []
        start = 0
        for call, end in zip(calls, ends, strict=True):
            stop = start if end is None else end
            events.append(self._build_tool_call(call, result.fixes, raw[start:stop], has_surrogates))
            start = stop
        if result.error is not None:
            events.append(InvalidToolCall("", result.error))
        return events

    def find_rejection(self, result: BodyResult, *, is_marked: bool, is_first: bool) -> str:
        """Return why the calls in ``result`` are only text (a key of `REJECTION_REASONS`), or "" if they are accepted.

        ``is_marked``: whether the calls have the format's markers. ``is_first``: whether no text precedes them. An
        unknown tool is then accepted if its name looks like a tool's name, and the model gets an error.
        """
        if not is_marked and self._policy.unmarked == "none":
            return "no-markers"
        if _is_example(result):
            return "placeholder"
        unknown_name = self._find_unknown_name(result)
        return "unknown-tool" if unknown_name and not (is_first and _TOOL_NAME.fullmatch(unknown_name)) else ""

    def are_undamaged(self, result: BodyResult) -> bool:
        """Return whether all calls name known tools, have their arguments in one object, and needed no repair except
        for missing markers."""
        return {*result.fixes} <= {"no-markers"} and all(
            self._tools.match(call.name) and _PARTIAL.isdisjoint(call.fixes) for call in result.calls
        )

    def build_buffered_events(
        self, result: BodyResult, raw: str, *, is_marked: bool, follows_text: bool
    ) -> list[Event]:
        """Return the events for calls that are buffered until the text after them shows whether they are accepted.
        `find_rejection` must have returned "".

        ``follows_text``: whether text precedes the calls. Because it may forbid them, a tool that may run commands or
        delete data then needs markers, even if it is declared as read-only.
        """
        needs_markers = not is_marked and self._policy.unmarked == "reads"
        return [self._check_buffered(event, needs_markers, follows_text) for event in self.build_events(result, raw)]

    def make_next_id(self, label: str) -> str:
        """Return an id for the next call before its text is complete. ``label`` makes the id unique."""
        return make_call_id(self._id_seed, self._count + 1, label)

    def _expand_calls(self, result: BodyResult) -> list[DecodedCall]:
        return [inner for call in result.calls for inner in expand_call(call, self._tools)]

    def _find_unknown_name(self, result: BodyResult) -> str:
        """Return the first name in the calls if none of the names is a known tool. Return "" if one is, or if the
        session's tools are not known."""
        names = [self.normalize(call.name, call.arguments)[0] for call in self._expand_calls(result) if self._tools]
        return names[0] if names and not any(map(self._tools.match, names)) else ""

    def _check_buffered(self, event: Event, needs_markers: bool, follows_text: bool) -> Event:
        """Return ``event``, or an error for the model if the tool is unknown or required markers are missing."""
        if not isinstance(event, ToolCall):
            return event
        tool = self._tools.match(event.name)
        if tool is None and self._tools:
            return InvalidToolCall(event.raw, self._tools.explain_unknown(event.name), event.name)
        if tool is None or not needs_markers or (tool.effect == "read" and not (follows_text and tool.is_risky)):
            return event
        right = self._format.encode_calls([(event.name, event.arguments)])
        error = f"{event.name} can change data, so its call needs its markers and no code fence. Write it like this:"
        return InvalidToolCall(event.raw, f"{error}\n{right}", event.name)

    def _build_tool_call(
        self, call: DecodedCall, fixes: tuple[str, ...], raw: str, has_surrogates: bool
    ) -> ToolCall | InvalidToolCall:
        """Return the normalized call, or an error if the policy forbids its repairs or its arguments are damaged.

        ``raw`` is the call's text; if a JSON value contains several calls, it is empty for all but the first.
        ``has_surrogates``: whether the text contains lone surrogates.
        """
        name, spelt, more_fixes = self.normalize(call.name, call.arguments)
        arguments = {key: value if type(value) is str else to_plain_numbers(value) for key, value in spelt.items()}
        self._count += 1
        repairs_by_name = dict.fromkeys((*fixes, *call.fixes, *more_fixes))
        if has_surrogates and not is_encodable(json.dumps([name, arguments], ensure_ascii=False)):
            name, arguments = replace_surrogates([name, arguments])
            repairs_by_name["lone-surrogate"] = None
        if repairs_by_name and not self._policy.repairs:
            deviations = "; ".join(REPAIRS[fix] for fix in repairs_by_name)
            return InvalidToolCall(raw, f"the call must be valid as written, but {deviations}. Write it again.", name)
        if number := find_leading_zeros([*spelt.values()]):
            error = f"expected a number without leading zeros, or the string {json.dumps(number)}, got {number}"
            return InvalidToolCall(raw, f"the call of {name!r} is ambiguous: {error}. Write it again.", name)
        if "repeated-argument" in repairs_by_name and (repeated := find_repeated_values(spelt)):
            values = " and ".join(shorten(encode_as_written(value), 60) for value in repeated[1])
            error = f"{repeated[0]!r} in the call of {name!r} has several values: {values}. Write it again with one."
            return InvalidToolCall(raw, error, name)
        tool = self._tools.match(name)
        if tool is not None and (error := find_damage(tool, arguments, repairs_by_name.keys())):
            return InvalidToolCall(raw, error, name)
        return ToolCall(make_call_id(self._id_seed, self._count, raw), name, arguments, raw, tuple(repairs_by_name))


def make_call_id(seed: str, number: int, raw: str) -> str:
    """Return a call's id in OpenAI's style: ``call_`` and 24 letters or digits. Equal arguments give equal ids.

    ``seed`` identifies the turn, ``number`` the call in it, and ``raw`` is the call's text. Only the length and the two
    ends of a long text are hashed.
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


def _is_example(result: BodyResult) -> bool:
    """Return whether the calls in ``result`` lack markers and have placeholders as values, as in an example."""
    if not {"no-markers", "code-fence"} & {*result.fixes}:
        return False  # written as the format requires
    arguments = [item for call in result.calls for item in call.arguments.items()]
    return any(isinstance(value, str) and is_placeholder(key, value) for key, value in arguments)


def is_placeholder(key: str, value: str) -> bool:
    """Return whether ``value`` is a placeholder: ``...``, ``{{path}}``, ``<your command>``, or a tag with a word of
    ``key``.

    ``<path>`` is a placeholder for ``file_path``, but ``<br>`` is not. ``{{name}}`` is not one in an edit's text,
    because templates contain such text.
    """
    match = _PLACEHOLDER.fullmatch(value)
    if match is None or (value[0] == "{" and key in _TEXTS):
        return False
    return match[1] is None or " " in match[1] or match[1].lower() in key.lower()
