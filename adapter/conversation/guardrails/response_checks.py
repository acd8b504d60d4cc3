"""Checks for answers without a call: refusals, unfounded claims, invented turns, calls in the wrong markup."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from adapter.conversation.guardrails.call_history import CallHistory
from adapter.core.events import (
    ContentReclassified,
    Event,
    InvalidToolCall,
    JsonObject,
    MarkupDelta,
    TextDelta,
    ToolCall,
)
from adapter.core.json.strict import decode_strict
from adapter.core.turn import Turn
from adapter.parsing.marker_tables import INVENTED_RESULT
from adapter.prompting.escaping import unescape_control_tokens
from adapter.prompting.intent.bm25 import stem_words
from adapter.prompting.intent.verbs import READS, VERB_STEMS, find_requested_action, is_question
from adapter.tools.json_call_extraction import looks_like_call
from adapter.tools.tool import Tool, ToolSet

SEARCHED = 1_000
"""Number of characters at each end of a request that are searched for a question."""
MAX_LENGTH = 240
"""Maximum length of an answer without content, in characters. All its words are stop words, or words that refuse or
report success in any task."""

_REFUSAL = """
ability able access action afraid ai answer apologize ask assist assistant browse but can cannot capability check
complete currently data directly does don elsewhere external fulfill handle have help information internet just
language large live look manually means model moment necessary no not online only outside perform physically process
provide query question real regret request requested required resource right second service simply something sorry
source such system task that thing think time tool try unable unfortunately unsure use verify web yourself
"""
_SUCCESS = """
action all already anything ask asked been care complete done else everything execute expect expected fine finish good
great have help is job just know more now ok okay operation other outcome perfect perform process processed request
required result set success successful successfully sure take taken task that ve want wanted work yes your
"""
_REFUSAL_STEMS, _SUCCESS_STEMS = frozenset(stem_words(_REFUSAL)), frozenset(stem_words(_SUCCESS))
_REFUSES = re.compile(
    r"""(?i)\b(?:afraid|apologi[sz]e|can(?:not|['’]?t)|(?:don['’]?t|not|no)\s+have|have\s+no|lack|not\s+able|regret|sorry
    |unable)\b""",
    re.VERBOSE,
)
_SUCCEEDS = re.compile(
    r"(?i)\b(?:done|complet\w*|execut\w*|finish\w*|perform\w*|process\w*|set|success\w*|taken\s+care)\b"
)
_ASKS = re.compile(
    r"""\b(?:what|which|who|whose|where|when|how\s+(?:far|high|large|long|many|much|old|warm))\b(?!\s+(?:about|if)\b)[^.?!]*\?
    |\b(?:give|tell)\s+(?:me|us)\b(?!\s+(?:when|once|as\s+soon)\b)""",
    re.IGNORECASE | re.VERBOSE,
)
_ASKS_WHETHER = re.compile(r"\b(?:complete|done|finished|progress|ready|stat(?:e|us))\b", re.IGNORECASE)
"""Matches questions to which "It is done." is an answer."""
MAX_NULL = 40
"""Maximum length of an answer that consists of a word for null, with punctuation, in characters."""
_NULL = re.compile(r"\W*(?:json\W+)?(?:null|nil|undefined|nan)\W*", re.IGNORECASE)
_REASON = re.compile(r"\w\s*[:;]\s*\w|\b(?:as|because|since|so(?!\s+i\b))\b", re.IGNORECASE)
_OFFERS_NO_HELP = re.compile(r"(?i)(?!.*\b(?:access|language model)\b).*\b(?:assist|help)\b")
MAX_CLAIM = 160
"""Maximum length of a bare claim of success, in characters."""
_DONE = re.compile(
    r"""\W*(?:(?:all|everything)\s+(?:is\s+|['’]s\s+)?(?:done|finished|set|completed?)\b|done\b|finished\b|completed\b|it\s+is\s+done\b
    |the\s+task\s+(?:is|has\s+been)\s+(?:done|finished|completed?)|i(?:\s+have|['’]ve)\s+(?:done|finished|completed)\s
    |(?:erledigt|fertig|fatto|hecho|listo|feito|fait|terminé|готово|сделано)\b|(?:已完成|完成了|完了しました|完了です|완료했습니다))""",
    re.IGNORECASE | re.VERBOSE,
)
_DISCLAIMER = re.compile(
    r"""\b(?:access|as\s+an?\s+(?:\w+\s+){0,4}(?:ai|assistant|model)|abilit\w+|brows\w+|capabilit\w+|real[- ]?time
    |up[- ]to[- ]date)\b(?!.*\d)""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_INSTEAD = re.compile(r"\?|\b(?:can\s+(?!(?:not|help|assist)\b)|instead|only)\b", re.IGNORECASE)
_OPEN_CALL = re.compile(
    r"""<\|?(?:function|function_calls?|invoke|tool_calls?)\b[^<>]{0,80}>|\[TOOL_CALLS?\]|<\|python_tag\|>""",
    re.IGNORECASE,
)
_BEFORE_JSON = re.compile(r"\s*(?:```\w*\s*|<\|?\w{1,30}\|?>\s*)?(?=[\[{])")
_CALL_HEAD = re.compile(
    r"""\s*(?:```\w*\s*)?\{\s*"name"\s*:\s*"(?P<name>[^"\n]*)"\s*,\s*"(?:arguments|parameters)"\s*:\s*(?P<list>\[)?"""
)
MAX_HEAD = 400
"""Number of characters at the start of an answer that are searched for the beginning of a call."""
_ABOUT_CALLS = re.compile(
    r"(?i)\b(?:tool|function)[- _]?call|(?<![.\w])json\b|\bexample|\bsyntax\b|\bformat\b|\bschema\b"
)
_USER_SAYS = re.compile(r"\n[ \t]*(?:\**(?:human|user)\**\s*:|###\s*(?:human|instruction|user)\b)", re.IGNORECASE)
_MODEL_SAYS = re.compile(r"\n[ \t]*(?:\**(?:ai|assistant|bot)\**\s*:|###\s*(?:assistant|response)\b)", re.IGNORECASE)
_ABOUT_TALK = re.compile(
    r"(?i)\b(?:chats?|conversations?|dialog(?:ue)?s?|examples?|interviews?|prompts?|role|scripts?|transcripts?)\b"
)


@dataclass(frozen=True, slots=True)
class CandidateAnswer:
    """An answer that guardrails check."""

    content: str
    calls: tuple[ToolCall, ...] = ()
    invalid: tuple[InvalidToolCall, ...] = ()
    rejected: tuple[str, ...] = ()
    """The text of calls in the answer that the parser rejected."""
    has_reasoned: bool = False
    """True if it contains reasoning."""
    has_invented: bool = False
    """True if it contains a result that the model invented."""

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

BEGINNING = 400
"""Number of characters at the start of a malformed call that are searched for its tool's name."""
MAX_NAME_OFFSET = 200
"""Number of characters after an opening marker that are searched for the call's name."""


def starts_with_tool_result(markup: MarkupDelta) -> bool:
    lowered = markup.raw.lower()
    return any(marker in lowered for marker in INVENTED_RESULT)


def is_empty_answer(content: str, past: CallHistory) -> bool:
    """Return whether an answer is blank, or only a word for null although nothing was asked."""
    if not content.strip():
        return True
    is_null = len(content) <= MAX_NULL and _NULL.fullmatch(content) is not None
    return is_null and not is_question(past.request) and not expects_information(past.request)


def asks_for_answer(request: str) -> bool:
    """Return whether ``request`` is a question, asks for information, or only wants something to be read."""
    return is_question(request) or expects_information(request) or find_requested_action(request)[0] in READS


def refuses(content: str) -> bool:
    """Return whether a short answer says that the model cannot do something."""
    return len(content) <= MAX_LENGTH and _REFUSES.search(content) is not None


def find_own_words(content: str) -> set[str] | None:
    """Return the stems of a refusal's words, except those typical of refusals; None if ``content`` does not refuse."""
    if not refuses(content) or re.search(r"\d", content):
        return None
    return set(stem_words(content)) - _REFUSAL_STEMS


def is_bare_success_claim(content: str) -> bool:
    """Return whether the answer claims success without stating an outcome."""
    is_short = 0 < len(content) <= MAX_LENGTH and not re.search(r"\d", content)
    return is_short and _SUCCEEDS.search(content) is not None and _SUCCESS_STEMS.issuperset(stem_words(content))


def expects_information(request: str) -> bool:
    """Return whether ``request`` asks for information, so that "Done." is not an answer."""
    ends = f"{request[:SEARCHED]}\n{request[-SEARCHED:]}"
    return any(not _ASKS_WHETHER.search(question[0]) for question in _ASKS.finditer(ends))


def find_refused_tool(content: str, past: CallHistory, tools: ToolSet) -> Tool | None:
    """Return the tool that can do what the answer refuses, if it refuses without a reason; otherwise None.

    The tool's name must contain all words of the answer, apart from those that are typical of refusals. If a tool was
    called before, return None, because its result may have shown that the action is impossible.
    """
    if past.recent:
        return None
    words = None if _REASON.search(content) else find_own_words(content)
    named = (tool for name, tool in tools.items() if words and words <= {*stem_words(name)})
    return next(named, None) or _find_disclaimed_tool(content, past.request, tools)


def _find_disclaimed_tool(content: str, request: str, tools: ToolSet) -> Tool | None:
    """Return the tool for the thing that a general disclaimer, such as "As an AI, I can't check the weather.", is
    about; None if ``content`` is not such a disclaimer, or says what can be done instead."""
    if not refuses(content) or not _DISCLAIMER.search(content) or _INSTEAD.search(content):
        return None
    topics = {*stem_words(request), *stem_words(content)}
    return next((tool for name, tool in tools.items() if topics & _find_object(name)), None)


def _find_object(tool: str) -> set[str]:
    """Return the stems of the words in a tool's name that are not verbs, or its last one: "get_weather"."""
    stems = stem_words(tool)
    return {*stems} - VERB_STEMS or {*stems[-1:]}


def is_blanket_refusal(content: str, past: CallHistory) -> bool:
    """Return whether the answer refuses without a reason, although no tool has just failed.

    "I can't help with that." may be the right first answer, but not after tool calls.
    """
    if any(not call.ok for call in past.recent[-1:]) or find_own_words(content) != set():
        return False
    return bool(past.recent) or _OFFERS_NO_HELP.match(content) is None


def claims_unbacked_success(content: str, past: CallHistory) -> bool:
    """Return whether the answer only claims success, and the claim is unfounded.

    It is unfounded if no tool was called since the user's message, or if the user requested information.
    """
    if past.recent:
        return is_bare_success_claim(content) and expects_information(past.request)
    return len(content) <= MAX_CLAIM and (_DONE.match(content) is not None or is_bare_success_claim(content))


def has_unparsed_call(answer: CandidateAnswer, request: str, tools: ToolSet) -> bool:
    """Return whether the answer contains an unparsed call of one of ``tools``, unless ``request`` is about calls."""
    if is_about_calls(request):
        return False
    prose = _remove_code(answer.content)
    opened = (prose[match.end() : match.end() + MAX_NAME_OFFSET] for match in _OPEN_CALL.finditer(prose))
    return _names_tool(answer.rejected, tools) or _names_tool(opened, tools)


def _names_tool(pieces: Iterable[str], tools: ToolSet) -> bool:
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", piece) for piece in pieces for name in tools)


def _remove_code(text: str) -> str:
    return re.sub(r"```.*?(?:```|\Z)|`[^`\n]*`", " ", text, flags=re.DOTALL)


def find_leading_call(text: str) -> str:
    """Return the JSON of the complete call at the start of ``text``, which may follow a marker, or "" if there is
    none."""
    start = _BEFORE_JSON.match(text)
    decoded = decode_strict(text, start.end()) if start is not None else None
    if start is None or decoded is None:
        return ""
    value = decoded.value[0] if isinstance(decoded.value, list) and decoded.value else decoded.value
    return text[start.end() : decoded.end] if looks_like_call(value) else ""


def find_arguments(text: str) -> JsonObject:
    """Return the arguments of the JSON call at the start of ``text``, or an empty object if there is none."""
    found = (read_leading_call(text).get(key) for key in ("arguments", "parameters"))
    return next((arguments for arguments in found if isinstance(arguments, dict)), {})


def read_leading_call(text: str) -> JsonObject:
    """Return the JSON call at the start of ``text``, or an empty object if there is none."""
    whole = find_leading_call(text)
    value = json.loads(whole) if whole else None
    call = value[0] if isinstance(value, list) and value else value
    return call if isinstance(call, dict) else {}


def is_about_calls(request: str) -> bool:
    """Return whether ``request`` is about JSON or calls, so that a call in the answer may be an example."""
    return _ABOUT_CALLS.search(request) is not None


def is_call_shaped(content: str, request: str) -> bool:
    """Return whether the answer begins with a call in JSON, even if its control tokens are escaped. Return False if
    ``request`` is about JSON or calls."""
    return find_leading_call(unescape_control_tokens(content)) != "" and not is_about_calls(request)


def begins_hopeless_call(content: str, request: str, tools: ToolSet) -> bool:
    """Return whether the answer begins like a call in JSON that names an unknown tool, or whose arguments are a list.

    The call need not be complete. Return False if ``request`` is about JSON or calls.
    """
    head = _CALL_HEAD.match(unescape_control_tokens(content[:MAX_HEAD]))
    is_call = head is not None and (head["list"] is not None or tools.match(head["name"]) is None)
    return is_call and not is_about_calls(request)


def find_answer_end(content: str, request: str) -> int:
    """Return the index at which the answer ends.

    The answer ends before a user message that the model has invented and answered, unless ``request`` is about
    dialogues.
    """
    user = _USER_SAYS.search(content)
    is_invented = user is not None and _MODEL_SAYS.search(content, user.end()) and not _ABOUT_TALK.search(request)
    return user.start() if user is not None and is_invented else len(content)


def cut_turn(turn: Turn, end: int) -> Turn:
    """Return ``turn`` up to the first call that follows more than ``end`` characters of content, without that call."""
    length, events = 0, list[Event]()
    for event in turn.events:
        match event:
            case TextDelta(text=text):
                length += len(text)
            case ContentReclassified():
                length = 0
            case ToolCall() | InvalidToolCall() if length > end:
                break
            case _:
                pass
        events.append(event)
    return Turn.from_events(events)


def find_named_tool(raw: str, tools: ToolSet) -> Tool | None:
    """Return the tool whose name occurs first in a malformed call, or None."""
    found = [
        (match.start(), -len(name), name)
        for name in tools
        if (match := re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", raw[:BEGINNING]))
    ]
    return tools[min(found)[2]] if found else None
