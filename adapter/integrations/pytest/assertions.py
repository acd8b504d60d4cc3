"""The calls of an answer against those that a test expects, with a difference that can be read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

ExpectedCalls: TypeAlias = "str | tuple[str, Mapping[str, Any] | str]"
"""A call by its name, whatever its arguments, or with them; a custom tool has a text. A value may be
``unittest.mock.ANY``, or whatever else compares as equal to what is meant."""

MAX_SAID = 300
"""Characters of an answer without calls that are shown."""

_Call: TypeAlias = "tuple[str, Any]"
"""A name, and the arguments; ``...`` for any."""


def assert_calls(answer: Any, expected: Sequence[ExpectedCalls], *, partial: bool = False) -> None:
    """Raises AssertionError unless ``answer`` makes exactly the ``expected`` calls, in their order.

    ``answer``: a completion, a message or a response of the openai SDK, one of these as a dict, a `Turn`, or a list of
    calls. ``partial``: it may give more arguments than are expected. Raises TypeError for an answer of another kind.
    """
    __tracebackhide__ = True
    wanted: list[_Call] = [(each, ...) if isinstance(each, str) else (each[0], each[1]) for each in expected]
    answer = _plain(answer)
    made = [_call(_plain(each)) for each in _listed(answer)]
    pairs = [_alike(one, other, partial) for one, other in zip(made, wanted, strict=False)]
    if len(made) == len(wanted) and all(one == other for one, other in pairs):
        return
    calls = [one for one, _ in pairs] + made[len(pairs) :]
    likes = [other for _, other in pairs] + wanted[len(pairs) :]
    said = "" if calls else f"\nIt makes no call, and says: {_said(answer)}"
    raise AssertionError(f"other calls than expected (- expected, + made):\n{_difference(likes, calls)}{said}")


def _alike(made: _Call, wanted: _Call, partial: bool) -> tuple[_Call, _Call]:
    """Both without what does not matter: arguments that are as expected are the same values, in the same order."""
    name, arguments = made
    if name != wanted[0]:
        return made, wanted
    if wanted[1] is ...:
        return made, made
    if not isinstance(arguments, dict) or not isinstance(wanted[1], Mapping):
        return made, wanted
    kept = {key: value for key, value in arguments.items() if key in wanted[1] or not partial}
    order = [*(key for key in kept if key in wanted[1]), *(key for key in wanted[1] if key not in kept)]
    like = {key: kept[key] if key in kept and wanted[1][key] == kept[key] else wanted[1][key] for key in order}
    return (name, kept), (name, like)


def _difference(wanted: Sequence[_Call], made: Sequence[_Call]) -> str:
    from difflib import ndiff

    before, after = ([line for call in calls for line in _lines(call)] for calls in (wanted, made))
    return "\n".join(line for line in ndiff(before, after) if not line.startswith("?"))


def _lines(call: _Call) -> list[str]:
    name, arguments = call
    if not isinstance(arguments, dict):
        return [f"{name}({'...' if arguments is ... else repr(arguments)})"]
    if not arguments:
        return [f"{name}()"]
    return [f"{name}(", *(f"    {key}={_shown(value)}," for key, value in arguments.items()), ")"]


def _shown(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):  # something that only compares
        return repr(value)


def _plain(value: Any) -> Any:
    """A value of the SDK's classes as a dict, and one of ours as the dict of its fields."""
    if hasattr(value, "model_dump"):
        return value.model_dump(warnings=False)
    if hasattr(value, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    return value


def _listed(answer: Any) -> Sequence[Any]:
    match answer:
        case list() | tuple():
            return answer
        case {"choices": [{"message": message}, *_]}:
            return _listed(message)
        case {"object": "response", "output": output}:
            return [item for item in output if item["type"] in ("function_call", "custom_tool_call")]
        case {"tool_calls": [*calls]} | {"calls": [*calls]}:
            return calls
        case {"role": _}:
            return []
    raise TypeError(f"expected a completion, a message, a response, a Turn or a list of calls, got {answer!r:.200}")


def _call(call: Any) -> _Call:
    match call:
        case {"function": {} as inner} | {"custom": {} as inner}:
            return _call(inner)
        case {"name": str(name), "arguments": arguments} | {"name": str(name), "input": arguments}:
            return name, _decoded(arguments)
        case (str(name), arguments):
            return name, arguments
    raise TypeError(f"expected a call with a name and arguments, got {call!r:.200}")


def _decoded(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except ValueError:  # the input of a custom tool
        return arguments


def _said(answer: Any) -> str:
    match answer:
        case {"choices": [{"message": {"content": str(text)}}, *_]} | {"content": str(text)}:
            return repr(text if len(text) <= MAX_SAID else f"{text[:MAX_SAID]}...")
        case {"output": [*items]}:
            parts = [part for item in items for part in item.get("content") or ()]
            return _said({"content": "".join(part.get("text") or "" for part in parts)})
    return "nothing"
