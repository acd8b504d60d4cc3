"""A probe names patterns in answers that point to the server, and not to the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from adapter.evaluation.probe.server_faults import find_server_faults
from tests.evaluation.probe.test_probe import COMPACT, HERMES, right_calls, task_of, tried
from tests.scripted_server import delta


def breaking(call: str) -> str:
    """Lose a token after the key of the arguments, as a wrongly accepted draft does."""
    return call.replace('"arguments": {', '"arguments": ,', 1)


FAULTS: dict[str, tuple[Callable[[str], str], str]] = {
    "same place": (breaking, "speculative decoding"),
    "repeated token": (lambda call: f"{call[:30]}{'gow ' * 30}", "quantization"),
    "doubled BOS": (lambda call: f"<s><s>{call}", "chat template"),
    "control token": (lambda call: f"{call}<|im_end|>\n<|im_start|>assistant\n", "chat template"),
}


def answers_of(spoil: Callable[[str], str]) -> list[str]:
    """Probe a scripted server whose calls are spoiled."""

    def model(body: Any) -> Iterator[dict[str, Any]]:
        calls = right_calls(task_of(body))
        yield delta(spoil(HERMES.encode_calls(calls)) if calls else "Well.", "stop")

    found = tried(model, [COMPACT], rungs=((8, 1),))
    return [outcome.written for trial in found.trials for outcome in trial.outcomes]


@pytest.mark.parametrize("fault", FAULTS)
def test_pattern_is_named(fault):
    spoil, cause = FAULTS[fault]
    (sentence,) = find_server_faults(answers_of(spoil))
    assert cause in sentence


def test_right_and_ordinary_wrong_answers_have_no_pattern():
    """Other places, cut calls, and one or two answers are chance."""
    assert find_server_faults(answers_of(str)) == []
    assert find_server_faults([HERMES.encode_calls([("f", {"a": "-" * 90 + "0" * 7})])] * 9) == []
    assert find_server_faults(['{"name": "f", "argu'] * 9) == []
    assert find_server_faults(['{"name": "f" "a": 1}', '{"name" "f"}', '{"x": [1, "a" "b"]}', '{"y": {"z": y}}']) == []
    assert find_server_faults(["<s>Hello", "<s>Hello"]) == []
