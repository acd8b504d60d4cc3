"""Limit the model's reasoning: find the budget of a request, and detect reasoning that exceeds it or loops.

llama.cpp's chat endpoint (``reasoning_budget_tokens``) and vLLM (``thinking_token_budget``) end the reasoning
themselves. With other servers and prompts, and if reasoning loops, this library stops a streamed answer, closes the
reasoning, and lets the model continue from there.
"""

from __future__ import annotations

from collections.abc import Mapping

from adapter.core.events import Json, JsonObject
from adapter.parsing.format import Format
from adapter.parsing.marker_tables import REASONING
from adapter.protocols.usage import get_object

BUDGET_FIELD = "reasoning_budget_tokens"
"""llama.cpp's request field. The fields of other APIs are converted to it."""
VLLM_FIELD = "thinking_token_budget"
"""vLLM's request field. Servers without ``--reasoning-parser`` reject it."""
REASONING_HEADER = "adapter-reasoning"
"""Response header with the reasoning budget."""

EFFORTS: Mapping[str, float] = {"none": 0, "minimal": 1 / 8, "low": 1 / 4, "medium": 1 / 2}
"""Share of the user's budget for each effort that a client can request. All other efforts get the whole budget."""

BYTES_PER_TOKEN = 4
"""Estimated length of a token in reasoning, which is mostly prose."""
SERVER_FIELDS: Mapping[str, str] = {"llama.cpp": BUDGET_FIELD, "vllm": VLLM_FIELD}
"""The request field that limits the reasoning, for each kind of model server."""
SERVER_MARGIN = 1.5
"""If the model server limits the reasoning itself, this library steps in only at this multiple of the budget."""
LOOP, PERIOD, STEP = 2_048, 256, 512
"""Reasoning loops if its last `LOOP` characters repeat a text of at most `PERIOD`; checked every `STEP` characters."""

_FIELDS = (BUDGET_FIELD, "thinking_budget_tokens", "reasoning_budget", VLLM_FIELD, "thinking_budget")
"""llama.cpp's, vLLM's and Qwen's request fields."""
_OUT_OF_TIME = (
    "\n\nConsidering the limited time by the user, I have to give the solution based on the thinking directly now.\n"
)
"""Words that end reasoning early. Qwen3 was trained with them (Qwen3 Technical Report, section 4.7)."""
_WHOLE_CLOSINGS = {"harmony": "<|end|><|start|>assistant"}
"""Texts that end the reasoning in formats without closing markers, by format name."""


def find_requested_budget(body: JsonObject, default: int | None) -> int | None:
    """Return the maximum number of tokens of reasoning in the answer to a chat request, or None if it is unlimited.

    ``default`` is the user's budget, or None. A requested effort level gets a share of it. Clients can only lower it.
    """
    settings = {field: get_object(body.get(field)) for field in ("thinking", "reasoning")}
    effort = body.get("reasoning_effort") or settings["reasoning"].get("effort")  # OpenRouter's
    share = EFFORTS.get(effort, 1.0) if isinstance(effort, str) else 1.0
    limits = [] if default is None else [int(default * share)]
    requested: list[Json] = [body.get(field) for field in _FIELDS]
    requested += [settings["thinking"].get("budget_tokens"), settings["reasoning"].get("max_tokens")]
    limits += [each for each in requested if isinstance(each, int) and not isinstance(each, bool) and each >= 0]
    return min(limits, default=None)


def remove_budget(body: JsonObject) -> JsonObject:
    """Return the request without the fields of a reasoning budget."""
    return {key: value for key, value in body.items() if key not in _FIELDS}


def find_closing_words(format: Format, text: str) -> str | None:
    """Return the text to append to ``text`` so that its reasoning ends, or None if the format has no reasoning.

    ``text`` is the end of the prompt followed by the model's text.
    """
    if format.name in _WHOLE_CLOSINGS:
        return _WHOLE_CLOSINGS[format.name]
    pairs = {**REASONING, **format.reasoning} if format.reasoning else {}
    last = max(pairs, key=text.rfind, default=None)
    if last is None:
        return None
    closing = pairs[last] if last in text else next(iter(format.reasoning.values()))
    return f"{_OUT_OF_TIME if closing == '</think>' else chr(10)}{closing}\n\n"


class ReasoningWatch:
    """Detects reasoning that is longer than ``max_tokens`` (None is unlimited) or repeats itself."""

    def __init__(self, max_tokens: float | None) -> None:
        self._max_bytes = None if max_tokens is None else max_tokens * BYTES_PER_TOKEN
        self._bytes = self._unchecked = 0
        self._tail = ""

    def add(self, text: str) -> str:
        """Add reasoning. Return the reason why it must end, ``budget`` or ``loop``, or "" if it may continue."""
        self._bytes += len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        if self._max_bytes is not None and self._bytes > self._max_bytes:
            return "budget"
        self._tail += text
        self._unchecked += len(text)
        if self._unchecked < STEP:
            return ""
        self._unchecked, self._tail = 0, self._tail[-LOOP:]
        return "loop" if ends_in_loop(self._tail) else ""


def ends_in_loop(text: str) -> bool:
    """Return whether ``text`` ends in at least eight repetitions of the same characters."""
    tail = text[-LOOP:]
    if len(tail) < LOOP:
        return False
    end = tail[-PERIOD // 4 :]
    before = tail.rfind(end, 0, -1)
    period = len(tail) - len(end) - before
    return before >= 0 and period <= PERIOD and tail.endswith(tail[:-period])
