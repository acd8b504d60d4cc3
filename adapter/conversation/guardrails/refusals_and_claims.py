"""Detect refusals and unfounded claims of success in answers without a call."""

from __future__ import annotations

import re

from adapter.conversation.guardrails.call_history import CallHistory, may_change
from adapter.core.text.word_stems import split_words, stem_words
from adapter.prompting.intent.text_values import find_quoted
from adapter.prompting.intent.verbs import (
    READS,
    VERB_STEMS,
    find_requested_action,
    is_question,
)
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet

SEARCHED = 1_000
"""Number of characters at each end of a request that are searched for a question."""
MAX_LENGTH = 240
"""Maximum length, in characters, of an answer that is checked for being only a refusal or a claim of success."""
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
_CHANGED = frozenset(stem_words("available change changed content correctly file new now text updated"))
"""Words of claims that a file was changed."""
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
"""Matches questions that "It is done." may answer."""
MAX_NULL = 40
"""Maximum length of an answer that is only a word for null, with punctuation, in characters."""
_NULL = re.compile(r"\W*(?:json\W+)?(?:null|nil|undefined|nan)\W*", re.IGNORECASE)
_NOTHING = re.compile(r"(?i)\b(?:empty|nothing|leer|nichts|rien|vide|nada|vac[ií]o|niente|vuoto|vazio)\b")
"""Matches requests that a word for null may answer."""
_REASON = re.compile(r"\w\s*[:;]\s*\w|\b(?:as|because|since|so(?!\s+i\b))\b", re.IGNORECASE)
_OFFERS_NO_HELP = re.compile(r"(?i)(?!.*\b(?:access|language model)\b).*\b(?:assist|help)\b")
MAX_CLAIM = 160
"""Maximum length of an answer that only claims success, in characters."""
_DONE = re.compile(
    r"""\W*(?:(?:all|everything)\s+(?:is\s+|['’]s\s+)?(?:done|finished|set|completed?)\b|done\b|finished\b|completed\b|it\s+is\s+done\b
    |the\s+task\s+(?:is|has\s+been)\s+(?:done|finished|completed?)|i(?:\s+have|['’]ve)\s+(?:done|finished|completed)\s
    |(?:erledigt|fertig|fatto|hecho|listo|feito|fait|terminé|готово|сделано)\b|(?:已完成|完成了|完了しました|完了です|완료했습니다))""",
    re.IGNORECASE | re.VERBOSE,
)
_CLAIMS_CHANGE = re.compile(
    r"""\W*(?:(?:ok(?:ay)?|sure|great|alright|done)\W+)?
    (?:i(?:\s+have|['’]ve)?\s+(?:just\s+|now\s+|already\s+|successfully\s+)*
        (?:[a-z]{2,}ed|sent|set|put|made|paid|bought|taken|told|written|left|begun|started)\b(?!\s+to\b)
    |(?:the|your|an?)\s[^.?!:\n]{1,80}?\s(?:has|have|is|are)\s+(?:now\s+|successfully\s+|already\s+)*
        (?:been\s+(?:successfully\s+)?)?(?:[a-z]{2,}ed|sent|set|paid|made|on|off)\b
    |[^.?!:\n]{1,80}?\s(?:has|have)\s+(?:now\s+)?been\s+(?:successfully\s+)?(?:[a-z]{2,}ed|sent|set|paid|made)\b)[^?:\n]*\Z""",
    re.IGNORECASE | re.VERBOSE,
)
"""Matches an answer that only says that something was changed: "I've sent the email.", "The lamp is now off."."""
_STATES = re.compile(r"\W*(?:i|my|we|our|you|your|he|she|they|it|this|that|there|the)\b", re.IGNORECASE)
"""Matches the beginning of a message that tells something instead of asking for an action."""
_DISCLAIMER = re.compile(
    r"""\b(?:access|as\s+an?\s+(?:\w+\s+){0,4}(?:ai|assistant|model)|abilit\w+|brows\w+|capabilit\w+|real[- ]?time
    |up[- ]to[- ]date)\b(?!.*\d)""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_INSTEAD = re.compile(r"\?|\b(?:can\s+(?!(?:not|help|assist)\b)|instead|only)\b", re.IGNORECASE)


def is_empty_answer(content: str, history: CallHistory) -> bool:
    """Return whether an answer is blank, or only a word for null although the user asked no question."""
    if not content.strip():
        return True
    is_null = len(content) <= MAX_NULL and _NULL.fullmatch(content) is not None
    is_asked = is_dictated(content, history.request) or _NOTHING.search(history.request)
    return is_null and not is_asked and not history.is_question and not expects_information(history.request)


def is_dictated(content: str, request: str) -> bool:
    """Return whether the user dictated the answer: the request contains all its words ("Say done"), or quotes a word
    for success ("Translate 'done'")."""
    is_quoted = any(_DONE.match(quoted) for quoted in find_quoted(request))
    return is_quoted or set(split_words(content)) <= set(split_words(request))


def asks_for_answer(request: str) -> bool:
    """Return whether ``request`` is a question, asks for information, or asks only to read something."""
    return is_question(request) or expects_information(request) or find_requested_action(request)[0] in READS


def has_content(content: str, request: str) -> bool:
    """Return whether an answer contains more than a claim of success: a word or number that is neither in the request,
    nor a verb for an action, nor typical of such claims."""
    numbers = {*re.findall(r"\d+", content)} - {*re.findall(r"\d+", request)}
    plain = re.sub(r"(?<=\w)\.[A-Za-z]\w{0,4}\b", "", content)  # without the suffixes of file names
    words = {*stem_words(plain)} - {*stem_words(request)} - _SUCCESS_STEMS - VERB_STEMS - _CHANGED
    is_claim = _DONE.match(content) or _NULL.fullmatch(content)
    return bool(numbers) or len(words) > (2 if is_claim else 0)


def refuses(content: str) -> bool:
    """Return whether a short answer says that the model cannot do something."""
    return len(content) <= MAX_LENGTH and _REFUSES.search(content) is not None


def find_own_words(content: str) -> set[str] | None:
    """Return the stems of the words in a refusal that are not typical of refusals, or None if ``content`` is not a
    refusal."""
    if not refuses(content) or re.search(r"\d", content):
        return None
    return set(stem_words(content)) - _REFUSAL_STEMS


def is_bare_success_claim(content: str) -> bool:
    """Return whether the answer claims success without stating an outcome."""
    is_short = 0 < len(content) <= MAX_LENGTH and not re.search(r"\d", content)
    return is_short and _SUCCEEDS.search(content) is not None and _SUCCESS_STEMS.issuperset(stem_words(content))


def expects_information(request: str) -> bool:
    """Return whether ``request`` asks for information. "Done." does not answer such a request."""
    ends = f"{request[:SEARCHED]}\n{request[-SEARCHED:]}"
    return any(not _ASKS_WHETHER.search(question[0]) for question in _ASKS.finditer(ends))


def find_refused_tool(content: str, history: CallHistory, tools: ToolSet) -> Tool | None:
    """Return the tool for the action that an answer refuses without a reason, or None.

    The tool's name must contain all words of the answer, apart from words that are typical of refusals. If a tool was
    called before, return None, because its result may have shown that the action is impossible.
    """
    if history.recent:
        return None
    words = None if _REASON.search(content) else find_own_words(content)
    named = (tool for name, tool in tools.items() if words and words <= {*stem_words(name)})
    return next(named, None) or _find_disclaimed_tool(content, history.request, tools)


def _find_disclaimed_tool(content: str, request: str, tools: ToolSet) -> Tool | None:
    """Return the tool that a general disclaimer is about, such as the weather tool for "As an AI, I can't check the
    weather." Return None if ``content`` is not a disclaimer, or offers an alternative."""
    if not refuses(content) or not _DISCLAIMER.search(content) or _INSTEAD.search(content):
        return None
    topics = {*stem_words(request), *stem_words(content)}
    return next((tool for name, tool in tools.items() if topics & _find_object(name)), None)


def _find_object(tool: str) -> set[str]:
    """Return the stems of the words in a tool's name that are not verbs: "weather" for "get_weather". If all are verbs,
    return the stem of the last one."""
    stems = stem_words(tool)
    return {*stems} - VERB_STEMS or {*stems[-1:]}


def is_blanket_refusal(content: str, history: CallHistory) -> bool:
    """Return whether the answer refuses without a reason, although no tool has just failed.

    "I can't help with that." may be the right first answer, but not after tool calls.
    """
    if any(not call.ok for call in history.recent[-1:]) or find_own_words(content) != set():
        return False
    return bool(history.recent) or _OFFERS_NO_HELP.match(content) is None


def claims_unbacked_success(content: str, history: CallHistory) -> bool:
    """Return whether the answer only claims success, and the claim is unfounded.

    It is unfounded if no tool was called since the user's message, or if the user requested information.
    """
    if is_dictated(content, history.request):
        return False
    if history.recent:
        return is_bare_success_claim(content) and expects_information(history.request)
    return len(content) <= MAX_CLAIM and (_DONE.match(content) is not None or is_bare_success_claim(content))


def claims_change_without_call(content: str, history: CallHistory, tools: ToolSet) -> bool:
    """Return whether an answer to a request only says that a change was made, although a tool that makes such a change
    was never called. The name or the description of this tool has a word in common with the answer."""
    is_claim = len(content) <= MAX_CLAIM and not history.recent and _CLAIMS_CHANGE.fullmatch(content.rstrip())
    if not is_claim or history.is_question or _STATES.match(history.request) or is_dictated(content, history.request):
        return False
    called, words = {call.name for call in history.calls}, {*stem_words(content)} - _SUCCESS_STEMS - VERB_STEMS
    about = (
        {*stem_words(f"{name} {tool.description}")}
        for name, tool in tools.items()
        if name not in called and may_change(name, tools)
    )
    return any(not words.isdisjoint(each) for each in about)
