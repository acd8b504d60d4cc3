"""Calls that lead nowhere: the same again with the same result, or a few in turn."""

from __future__ import annotations

import re
from collections.abc import Sequence

from adapter.conversation.guardrails.call_history import CallHistory, PastCall
from adapter.tools.tool import ToolSet

REPETITIONS = 2
"""How often a call may run again with the same result and nothing changed in between."""

LONGEST_CYCLE, ROUNDS = 4, 2
"""Calls of a cycle, and how often it may go round."""

_POLLS = re.compile(r"status|wait|poll|progress|sleep|ping|monitor|watch|next|advance|step|tick|retry|roll|random|flip")
"""How tools are called that are meant to be called again and again, where nobody says so."""

_REPEATS = re.compile(
    r"""\b(?:again|both|each|every|keep|per|poll|repeat\w*|retry|several|thrice|times|twice|until|wait|while|(?:two|three)\s+of)\b
    |\b(?:erneut|mehrmals|noch|warte|wieder\w*|zweimal|bis|deux|fois|jusqu\w*|dos|veces|hasta|volte|vezes|até|fino)\b
    |раз|пока|снова|дважды|[两兩二三]次|直到|再|回|まで|번|까지""",
    re.IGNORECASE | re.VERBOSE,
)
"""In a request: a call may be meant to be made more than once."""
_NOT_YET = re.compile(
    r"""busy|in[ _-]progress|\bmore\b|\bnext|not[ ](?:ready|yet)|offset|\bpage|pending|processing|queued|retry|running
    |starting|try[ ]again|\bwait""",
    re.IGNORECASE | re.VERBOSE,
)
"""In a result: another one may come."""


def repeat_count(past: CallHistory, call: PastCall, earlier: Sequence[PastCall], tools: ToolSet) -> int:
    """How often ``call`` was made with the same result, or in vain, since something may have changed what it gives.

    ``earlier``: calls of the same answer, whose results are not known yet.
    """
    if is_polling_tool(call.name, tools):
        return 0
    times, last, key = 0, "", call.key
    for made in past.recent:
        if made.key == key:
            times = times + 1 if made.result == last or not made.ok else 1
            last = made.result
        elif made.ok and made.changes:
            times = 0
    for made in earlier:
        times = times + 1 if made.key == key else 0 if made.changes else times
    return times


def is_immediate_repeat(past: CallHistory, call: PastCall, earlier: Sequence[PastCall]) -> bool:
    """Whether ``call`` is the one that was made last, with success, and nothing says that it is to be made again."""
    last = past.recent[-1] if past.recent and not earlier else None
    if last is None or not last.ok or last.key != call.key:
        return False
    has_changed = any(made.key == call.key and made.result != last.result for made in past.recent)
    return not (has_changed or _REPEATS.search(past.request) or _NOT_YET.search(last.result[:400]))


def find_cycle(past: CallHistory, key: str, tools: ToolSet) -> tuple[PastCall, ...]:
    """The calls that went round in turn and would again with the call ``key``; empty where there are none."""
    recent = past.recent
    for length in range(2, LONGEST_CYCLE + 1):
        rounds = [recent[len(recent) - length * back :][:length] for back in range(1, ROUNDS + 1)]
        block = rounds[0]
        if len(recent) < length * ROUNDS or block[0].key != key or len({made.key for made in block}) < 2:
            continue
        if all(_same(block, other) for other in rounds) and not any(
            is_polling_tool(made.name, tools) for made in block
        ):
            return block
    return ()


def is_polling_tool(name: str, tools: ToolSet) -> bool:
    tool = tools.match(name)
    if tool is None:
        return False
    return tool.polls or (tool.validate is None and _POLLS.search(name.lower()) is not None)


def _same(block: Sequence[PastCall], other: Sequence[PastCall]) -> bool:
    return all(one.key == two.key and one.result == two.result for one, two in zip(block, other, strict=True))
