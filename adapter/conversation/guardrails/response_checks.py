"""Checks for answers without a call: refusals, unfounded claims, invented turns, calls in the wrong markup."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from adapter.conversation.guardrails.call_history import CallHistory
from adapter.conversation.guardrails.empty_claims import (
    expects_information,
    is_bare_refusal,
    is_bare_success_claim,
    is_unexplained_refusal,
)
from adapter.core.events import InvalidToolCall, JsonObject, MarkupDelta, ToolCall
from adapter.core.json.strict import decode_strict
from adapter.core.turn import Turn
from adapter.parsing.marker_tables import INVENTED_RESULT
from adapter.prompting.escaping import unescape_control_tokens
from adapter.tools.call_shapes import looks_like_call
from adapter.tools.tool import Tool, ToolSet

MAX_REFUSAL = 600
"""Maximum length of an answer that is only a refusal, in characters. In a longer answer, a refusal is only a
remark."""

_NO = r"""(?:(?:do\s+not|don['’]?t|cannot|can\s+not|can['’]?t|lack|(?:['’]?m|am)\s+(?:not\s+able|unable)\s+to)\s+
    (?:(?:actually|currently|directly|physically)\s+)*(?:have\s+)?(?:the\s+(?:ability|capabilit(?:y|ies))\s+to\s+)?
    (?:(?:any|direct|real-?time)\s+)*)"""
_REFUSED = {
    "file": rf"""{_NO}(?:access\s+(?:to\s+)?|(?:browse|open|read|see|view)(?:ing)?\s+)(?:\w+[- ]){{0,3}}
        (?:codebase|director(?:y|ies)|disk|files?|file\s*system|folders?|repositor(?:y|ies)|workspace)\b""",
    "web": rf"""{_NO}(?:access\s+(?:to\s+)?|brows(?:e|ing)\s+|look\s+up\s+|search(?:ing)?\s+)(?:\w+[- ]){{0,3}}
        (?:internet|online|real-?time\s+(?:data|information)|web(?:site|page)?s?)\b""",
    "weather": rf"{_NO}(?:access\s+(?:to\s+)?|check\s+|get\s+|provide\s+)(?:\w+[- ]){{0,3}}(?:forecast|weather)",
    "command": rf"""{_NO}(?:access\s+(?:to\s+)?|execut(?:e|ing)\s+|run(?:ning)?\s+)(?:\w+[- ]){{0,3}}
        (?:code|commands?|programs?|scripts?|shell|terminal)\b""",
    "tools": rf"{_NO}(?:access\s+(?:to\s+)?|call\s+|use\s+)(?:\w+[- ]){{0,2}}(?:functions?|tools?)\b",
}
"""Patterns for claims that an action is impossible, by topic."""
_TOOL_NAMES = {
    "file": r"(?:cat|find|grep|list|open|read|search|view)\w*(?:dir|file|folder)|^(?:cat|glob|grep|ls|read|view)$",
    "web": r"""(?:bing|brave|google|internet|web)_?\w*search|search_?(?:the_)?(?:internet|online|web)
        |(?:browse|fetch|open)_?\w*(?:page|url|web)|^browse\w*$""",
    "weather": r"forecast|weather",
    "command": r"(?:exec|run)\w*_?(?:bash|code|command|python|script|shell|terminal)|^(?:bash|python|shell|terminal)$",
    "tools": r"",
}
"""Patterns for names of tools that disprove such a claim, by topic."""
_REFUSED_RE = {kind: re.compile(pattern, re.IGNORECASE | re.VERBOSE) for kind, pattern in _REFUSED.items()}
_TOOL_NAMES_RE = {kind: re.compile(pattern, re.IGNORECASE | re.VERBOSE) for kind, pattern in _TOOL_NAMES.items()}
_REASON = re.compile(r"[^.!?:;,]{0,40}(?::|;|,?\s*\b(?:as|because|since|so(?!\s+i\b))\b)", re.IGNORECASE)

_DISCLAIMED = re.compile(
    r"""\bas\s+an?\s+(?:ai|artificial|language|large)\b[^.!?]{0,120}
    (?:\b(?:have\s+no|not\s+have|lack|no)\s+(?:\w+\s+){0,2}access\b|n['’]t\s+have\s+(?:\w+\s+){0,2}access\b
    |\b(?:cannot|can['’]?t|not\s+able\s+to|unable\s+to)\s+(?:directly\s+|actually\s+)?
        (?:access|assist|browse|execute|help|open|perform|read|retrieve|run)\b)""",
    re.IGNORECASE | re.VERBOSE,
)
"""Matches disclaimers that models without tools are trained to give."""
MAX_CLAIM = 160
"""Maximum length of a bare claim of success, in characters."""
_DONE = re.compile(
    r"""\W*(?:(?:all|everything)\s+(?:is\s+|['’]s\s+)?(?:done|finished|set|completed?)\b|done\b|finished\b|completed\b|it\s+is\s+done\b
    |the\s+task\s+(?:is|has\s+been)\s+(?:done|finished|completed?)|i(?:\s+have|['’]ve)\s+(?:done|finished|completed)\s
    |(?:erledigt|fertig|fatto|hecho|listo|feito|fait|terminé|готово|сделано)\b|(?:已完成|完成了|完了しました|完了です|완료했습니다))""",
    re.IGNORECASE | re.VERBOSE,
)
_OPEN_CALL = re.compile(
    r"""<\|?(?:function|function_calls?|invoke|tool_calls?)\b[^<>]{0,80}>|\[TOOL_CALLS?\]|<\|python_tag\|>""",
    re.IGNORECASE,
)
_BEFORE_JSON = re.compile(r"\s*(?:```\w*\s*|<\|?\w{1,30}\|?>\s*)?(?=[\[{])")
_ABOUT_CALLS = re.compile(
    r"(?i)\b(?:tool|function)[- _]?call|(?<![.\w])json\b|\bexample|\bsyntax\b|\bformat\b|\bschema\b"
)
_FAILURE_WORDS = re.compile(
    r"""\b(?:aucun|but|cannot|denied|désolé|error|erreur|errore|erro|fail\w*|fehler|however|impossible|invalid|issue|kein\w*|
    leider|missing|nicht|no|non|not|não|pas|problem\w*|purtroppo|sorry|unable|unfortunately)\b|n['’]t\b|can['’]t|\bне\b|
    ошибк|无法|不|错误|失败|抱歉|ません|エラー|없|못|오류|실패""",
    re.IGNORECASE | re.VERBOSE,
)
_OTHER_SPEAKER = re.compile(r"\n[ \t]*\**(?:human|user)\**\s*:\**\s+\S|\n###\s*(?:human|instruction|user)\b", re.I)
_USER_SAYS = re.compile(r"\n[ \t]*(?:\**(?:human|user)\**\s*:|###\s*(?:human|instruction|user)\b)", re.IGNORECASE)
_MODEL_SAYS = re.compile(r"\n[ \t]*(?:\**(?:ai|assistant|bot)\**\s*:|###\s*(?:assistant|response)\b)", re.IGNORECASE)
_ABOUT_TALK = re.compile(
    r"(?i)\b(?:chats?|conversations?|dialog(?:ue)?s?|examples?|interviews?|prompts?|role|scripts?|transcripts?)\b"
)


@dataclass(frozen=True, slots=True)
class CandidateAnswer:
    """An answer to check. ``rejected``: rejected calls within its text. ``has_reasoned``: whether it contains
    reasoning. ``has_invented``: whether it contains a result that the model invented."""

    content: str
    calls: tuple[ToolCall, ...] = ()
    invalid: tuple[InvalidToolCall, ...] = ()
    rejected: tuple[str, ...] = ()
    has_reasoned: bool = False
    has_invented: bool = False

    @classmethod
    def from_turn(cls, turn: Turn) -> CandidateAnswer:
        text = "".join(event.raw for event in turn.events) if turn.rejected else ""
        rejected = tuple(text[each.start : each.end] for each in turn.rejected if each.reason in IN_TEXT)
        has_invented = any(isinstance(event, MarkupDelta) and starts_with_tool_result(event) for event in turn.events)
        return cls(turn.content, turn.calls, turn.invalid, rejected, bool(turn.reasoning), has_invented)

    @property
    def text(self) -> str:
        """The whole answer as text."""
        calls = (json.dumps(call.arguments, ensure_ascii=False) for call in self.calls)
        return "\n".join([self.content, *calls, *(each.raw for each in self.invalid), *self.rejected])


IN_TEXT = frozenset({"text-follows", "no-body"})
"""The parser's rejection reasons that may apply to an intended call."""

MAX_NAME_OFFSET = 200
"""Number of characters after an opening marker that are searched for the call's name."""


def starts_with_tool_result(markup: MarkupDelta) -> bool:
    lowered = markup.raw.lower()
    return any(marker in lowered for marker in INVENTED_RESULT)


def find_wrongly_refused_tool(content: str, past: CallHistory, tools: ToolSet) -> Tool | None:
    """Return a tool for the action that the answer claims to be impossible.

    Return None if the answer makes no such claim, or if a tool was called before: the model may have learned the limit
    from its result.
    """
    if past.recent or len(content) > MAX_REFUSAL:
        return None
    for kind, refused in _REFUSED_RE.items():
        if (match := refused.search(content)) and not _REASON.match(content, match.end()):
            return next((tool for name, tool in tools.items() if _TOOL_NAMES_RE[kind].search(name)), None)
    return None


def disclaims_ability(content: str) -> bool:
    """Return whether the answer claims that language models cannot do the task, whatever the available tools."""
    return len(content) <= MAX_REFUSAL and _DISCLAIMED.search(content) is not None


def is_blanket_refusal(content: str, past: CallHistory) -> bool:
    """Return whether the answer refuses without a reason, although no tool has just failed.

    "I can't help with that." may be the right first answer, but not after tool calls.
    """
    if any(not call.ok for call in past.recent[-1:]):
        return False
    return is_unexplained_refusal(content) or (bool(past.recent) and is_bare_refusal(content))


def claims_unbacked_success(content: str, past: CallHistory) -> bool:
    """Return whether the answer consists of a claim of success, although no tool was called since the user's message,
    or although the user requested information."""
    if past.recent:
        return is_bare_success_claim(content) and expects_information(past.request)
    return len(content) <= MAX_CLAIM and (_DONE.match(content) is not None or is_bare_success_claim(content))


def has_unparsed_call(answer: CandidateAnswer, request: str, tools: ToolSet) -> bool:
    """Return whether the answer contains an unparsed call of one of ``tools``, unless ``request`` is about calls."""
    if _ABOUT_CALLS.search(request):
        return False
    prose = _remove_code(answer.content)
    opened = (prose[match.end() : match.end() + MAX_NAME_OFFSET] for match in _OPEN_CALL.finditer(prose))
    return _names_tool(answer.rejected, tools) or _names_tool(opened, tools)


def _names_tool(pieces: Iterable[str], tools: ToolSet) -> bool:
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", piece) for piece in pieces for name in tools)


def _remove_code(text: str) -> str:
    return re.sub(r"```.*?(?:```|\Z)|`[^`\n]*`", " ", text, flags=re.DOTALL)


def find_leading_call(text: str) -> str:
    """Return the JSON of the whole call that ``text`` begins with, after an optional marker; "" if there is none."""
    start = _BEFORE_JSON.match(text)
    decoded = decode_strict(text, start.end()) if start is not None else None
    if start is None or decoded is None:
        return ""
    value = decoded.value[0] if isinstance(decoded.value, list) and decoded.value else decoded.value
    return text[start.end() : decoded.end] if looks_like_call(value) else ""


def find_arguments(text: str) -> JsonObject:
    """Return the arguments of the call in JSON that ``text`` begins with; empty if there is none."""
    found = (read_leading_call(text).get(key) for key in ("arguments", "parameters"))
    return next((arguments for arguments in found if isinstance(arguments, dict)), {})


def read_leading_call(text: str) -> JsonObject:
    """Return the call in JSON that ``text`` begins with; empty if there is none."""
    whole = find_leading_call(text)
    value = json.loads(whole) if whole else None
    call = value[0] if isinstance(value, list) and value else value
    return call if isinstance(call, dict) else {}


def is_call_shaped(content: str, request: str) -> bool:
    """Return whether the answer begins with a call in JSON, even if its control tokens are escaped. Return False if
    ``request`` is about JSON or calls."""
    return find_leading_call(unescape_control_tokens(content)) != "" and not _ABOUT_CALLS.search(request)


def ignores_failed_result(content: str, past: CallHistory) -> bool:
    """Return whether the last call failed and the answer does not mention a failure."""
    return bool(past.recent) and not past.recent[-1].ok and not _FAILURE_WORDS.search(content)


def writes_other_roles(content: str) -> bool:
    return _OTHER_SPEAKER.search(content) is not None


def find_answer_end(content: str, request: str) -> int:
    """Return the index at which the answer ends.

    The answer ends before a user message that the model has invented and answered, unless ``request`` is about
    dialogues.
    """
    user = _USER_SAYS.search(content)
    is_invented = user is not None and _MODEL_SAYS.search(content, user.end()) and not _ABOUT_TALK.search(request)
    return user.start() if user is not None and is_invented else len(content)
