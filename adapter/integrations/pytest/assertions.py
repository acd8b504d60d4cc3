"""Compare the calls of an answer with the expected calls, and show a readable diff."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

ExpectedCalls: TypeAlias = "str | tuple[str, Mapping[str, Any] | str]"
"""An expected call: a name alone, which allows any arguments, or a name and arguments. The arguments of a custom tool
are text. A value may be ``unittest.mock.ANY`` or any other object that compares equal."""
MAX_SHOWN_TEXT = 300
"""Maximum length of the text shown for an answer without calls, in characters."""
_Call: TypeAlias = "tuple[str, Any]"
"""Name and arguments of a call. ``...`` allows any arguments."""


def assert_calls(answer: Any, expected: Sequence[ExpectedCalls], *, partial: bool = False) -> None:
    """Raise AssertionError unless ``answer`` makes exactly the ``expected`` calls, in order.

    ``answer`` is a completion, a message or a response from the openai SDK, a message from the anthropic SDK, one of
    these as a dict, a `Turn`, or a list of calls. If ``partial`` is True, calls may have more arguments than expected.
    Raises TypeError for any other answer.
    """
    __tracebackhide__ = True
    expected_calls: list[_Call] = [(item, ...) if isinstance(item, str) else (item[0], item[1]) for item in expected]
    answer = _to_plain(answer)
    actual = [_convert_call(_to_plain(item)) for item in _get_calls(answer)]
    pairs = [_normalize_pair(one, other, partial) for one, other in zip(actual, expected_calls, strict=False)]
    if len(actual) == len(expected_calls) and all(one == other for one, other in pairs):
        return
    calls = [one for one, _ in pairs] + actual[len(pairs) :]
    comparable_expected = [other for _, other in pairs] + expected_calls[len(pairs) :]
    content_note = "" if calls else f"\nNo calls were made; the content is {_describe_content(answer)}"
    raise AssertionError(
        f"unexpected calls (- expected, + actual):\n{_describe_difference(comparable_expected, calls)}{content_note}"
    )


def _normalize_pair(actual: _Call, expected: _Call, partial: bool) -> tuple[_Call, _Call]:
    """Normalize a pair of calls, so that a diff shows only real differences: values that compare equal are made
    identical, and arguments are put in the same order."""
    name, arguments = actual
    if name != expected[0]:
        return actual, expected
    if expected[1] is ...:
        return actual, actual
    if not isinstance(arguments, dict) or not isinstance(expected[1], Mapping):
        return actual, expected
    kept = {key: value for key, value in arguments.items() if key in expected[1] or not partial}
    order = [*(key for key in kept if key in expected[1]), *(key for key in expected[1] if key not in kept)]
    comparable = {
        key: kept[key] if key in kept and expected[1][key] == kept[key] else expected[1][key] for key in order
    }
    return (name, kept), (name, comparable)


def _describe_difference(expected_calls: Sequence[_Call], actual: Sequence[_Call]) -> str:
    from difflib import ndiff

    before, after = ([line for call in calls for line in _format_lines(call)] for calls in (expected_calls, actual))
    return "\n".join(line for line in ndiff(before, after) if not line.startswith("?"))


def _format_lines(call: _Call) -> list[str]:
    name, arguments = call
    if not isinstance(arguments, dict):
        return [f"{name}({'...' if arguments is ... else repr(arguments)})"]
    if not arguments:
        return [f"{name}()"]
    return [f"{name}(", *(f"    {key}={_render_value(value)}," for key, value in arguments.items()), ")"]


def _render_value(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):  # an object that only implements comparison
        return repr(value)


def _to_plain(value: Any) -> Any:
    """Convert an SDK model or a dataclass to a dict."""
    if hasattr(value, "model_dump"):
        return value.model_dump(warnings=False)
    if hasattr(value, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    return value


def _get_calls(answer: Any) -> Sequence[Any]:
    match answer:
        case list() | tuple():
            return answer
        case {"choices": [{"message": message}, *_]}:
            return _get_calls(message)
        case {"object": "response", "output": output}:
            return [item for item in output if item["type"] in ("function_call", "custom_tool_call")]
        case {"tool_calls": [*calls]} | {"calls": [*calls]}:
            return calls
        case {"function_call": {} as call}:
            return [call]
        case {"role": _, "content": [*parts]}:
            return [part for part in parts if part.get("type") == "tool_use"]
        case {"role": _}:
            return []
    raise TypeError(f"expected a completion, a message, a response, a Turn or a list of calls, got {answer!r:.200}")


def _convert_call(call: Any) -> _Call:
    match call:
        case {"function": {} as inner} | {"custom": {} as inner}:
            return _convert_call(inner)
        case {"name": str(name), "arguments": arguments} | {"name": str(name), "input": arguments}:
            return name, _decode_arguments(arguments)
        case (str(name), arguments):
            return name, arguments
    raise TypeError(f"expected a call with a name and arguments, got {call!r:.200}")


def _decode_arguments(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except ValueError:  # the input of a custom tool
        return arguments


def _describe_content(answer: Any) -> str:
    match answer:
        case {"choices": [{"message": {"content": str(text)}}, *_]} | {"content": str(text)}:
            return repr(text if len(text) <= MAX_SHOWN_TEXT else f"{text[:MAX_SHOWN_TEXT]}...")
        case {"output": [*items]}:
            parts = [part for item in items for part in item.get("content") or ()]
            return _describe_content({"content": "".join(part.get("text") or "" for part in parts)})
    return "nothing"
