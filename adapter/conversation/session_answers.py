"""Examine and complete the answers of a session: detect repetition, keep a truncated call, add a missing result."""

from __future__ import annotations

from adapter.conversation.guardrails.call_history import CallHistory
from adapter.conversation.guardrails.guardrails import MAX_DROPPED
from adapter.conversation.guardrails.loop_detection import repeats_in_call, repeats_text
from adapter.conversation.guardrails.refusals_and_claims import asks_for_answer, expects_information
from adapter.conversation.guardrails.requested_file_changes import find_started_action, find_unused_values
from adapter.conversation.guardrails.unparsed_calls import find_leading_call
from adapter.core.text.word_stems import stem_words
from adapter.core.turn import Turn
from adapter.parsing.format import Format
from adapter.parsing.parse_policy import APPROVED
from adapter.parsing.parser import parse
from adapter.tools.tool_set import ToolSet


def repeats_itself(text: str, turn: Turn, tools: ToolSet) -> bool:
    """Return whether an unfinished answer repeats a text, a call or a broken call. ``turn`` is the parsed ``text``."""
    is_code = turn.content.count("```") % 2 == 1  # such as a matrix of zeros
    if not turn.invalid:
        return repeats_text(text, 2 if turn.calls else 32 if is_code else 4)
    repetitions = len(turn.invalid) - len({each.raw for each in turn.invalid})
    return repeats_in_call(turn.invalid[-1].raw, tools) or repetitions > MAX_DROPPED


def keep_whole_call(turn: Turn, tools: ToolSet, format: Format) -> Turn:
    """Reduce a truncated answer to its first complete call, if the answer continued after that call. Return any other
    answer unchanged."""
    texts = [turn.content, *(each.raw for each in turn.invalid)]
    whole = next((call for text in texts if (call := find_leading_call(text)) and not text.endswith(call)), "")
    found = parse(whole, tools, format, policy=APPROVED, finish_reason="stop") if whole else turn
    return found if found.calls else turn


def exclude_changes(names: tuple[str, ...], history: CallHistory, tools: ToolSet) -> tuple[str, ...]:
    """Return the tools ``names``. If the user asked a question, leave out the tools that change files."""
    is_asked = history.is_question
    return tuple(name for name in names if not is_asked or tools[name].effect not in ("write", "delete"))


def may_have_answer(history: CallHistory) -> bool:
    """Return whether the user asked a question, and tool results may contain the answer."""
    has_results = any(call.ok and not call.changes for call in history.recent)
    return has_results and (history.is_question or expects_information(history.request))


def has_complete_change(history: CallHistory) -> bool:
    """Return whether the user asked for a change of a file, and all values in the request were used."""
    return find_started_action(history) != "" and not find_unused_values(history)


def append_unused_result(content: str, result: str, request: str) -> str:
    """Append ``result``, the result of a repeated call, to the answer ``content``, unless they have a word in common.
    After a question, an answer with a number is unchanged, because the number may be a count."""
    words = set(stem_words(result))
    is_used = not words or not words.isdisjoint(stem_words(content))
    is_count = asks_for_answer(request) and any(map(str.isdigit, content))
    return content if is_used or is_count else f"{content}\n\n{result}"
