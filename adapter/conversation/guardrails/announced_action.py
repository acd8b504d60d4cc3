"""Detect answers that end with an announced action ("Let me read the file:"), in several languages.

Only the last sentence counts. It must begin with an announcement which, in English, needs a verb for a tool's action.
Offers, questions, conditions and text that the user requested ("write a mail that ...") are not announcements. A missed
announcement only loses a retry, but a false alarm costs a model call; tests/conversation/guardrails measures both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from adapter.core.text.word_stems import split_words, stem_word
from adapter.prompting.intent.verbs import ACTIONS

MAX_TAIL = 400
"""Number of characters at the end of an answer that are searched."""
MAX_WORDS = 4
"""An announcement's verb must be among this number of words after it."""

_WORK = frozenset(
    stem_word(verb)
    for name in ("read", "look", "add", "create", "edit", "move", "delete", "run")
    for verb in ACTIONS[name]
)
_FLAGS = re.IGNORECASE | re.VERBOSE
_FILLER = r"""\W*(?:(?:(?:please\s+)?hold\s+on|one\s+moment(?:,?\s+please)?|sure|ok(?:ay)?|great|alright|certainly
    |of\s+course|good|perfect|thanks?(?:\s+you)?|yes|right|absolutely|got\s+it|now|first|next|then|so|and)\W+)*
    (?:to\s+\w+\b[^.:!?]{0,90},\s+)?"""
_ENGLISH = re.compile(
    rf"""{_FILLER}(?:(?:let\s+me|let['’]?s|let\s+us|i\s*['’]ll|i\s+will|we\s*['’]ll|i\s*(?:['’]m|\s+am)\s+going\s+to)\b
    |(?:i|we)\s+(?:now\s+)?(?:need\s+to|have\s+to|should|must)\b(?=.*\b(?:first|now)\b)
    |now\s+(?=\w+ing\b)|(?:i\s*['’]m|i\s+am)\s+(?:(?:now|currently)\s+(?=\w+ing\b)|(?=\w+ing\s+(?:at|into|it|that|the|this)\b))
    |(?=\w+ing\b[^.!?]{{0,60}}(?:\.\.\.|…)))(?P<action>.*)""",
    _FLAGS | re.DOTALL,
)
_OTHERS = re.compile(
    r"""\W*(?:(?:ich\s+werde|(?:zuerst|jetzt|nun|als\s+nächstes|dann)\s+(?:werde|will|muss)\s+ich
    |lass(?:en\s+sie)?\s+mich|je\s+vais|laisse[zr]?-moi|commençons\s+par|(?:primero\s+|ahora\s+)?voy\s+a|déjame|permíteme
    |vamos\s+a|vou|deixe-me|vamos|vado\s+a|lascia(?:te)?mi|adesso\s+devo|(?:давайте|сейчас|теперь|сначала)\s+я
    |давайте|я\s+(?:сейчас|теперь|сначала))\s
    |(?:(?:首先|接下来|现在|那么)[，,]?\s*)?(?:让我|我来|我将|我先|我需要)
    |[^。！？\n]{0,40}を\w{1,6}(?:てみ)?ます|[^.!?\n]{0,40}(?:보겠습니다|볼게요))""",
    _FLAGS,
)
_WAIT = re.compile(
    r"""\W*(?:(?:please\s+)?(?:bear\s+with\s+me|hang\s+on|hold\s+on|stand\s+by|wait)(?:\s+(?:for\s+)?(?:a|one)\s+(?:moment|second))?
    (?:\s+while\s+(?:i|we)\b[^.!?]*)?|(?:please\s+)?(?:just\s+)?(?:give\s+me\s+)?(?:just\s+)?(?:a|one)\s+(?:moment|sec|second)(?:,?\s+please)?
    |einen\s+(?:augenblick|moment)(?:,?\s+bitte)?|un\s+(?:instant|moment)(?:,?\s+s['’]il\s+(?:vous|te)\s+pla[iî]t)?
    |un\s+momento(?:,?\s+por\s+favor)?|请稍[等候]|少々お待ちください|잠시만\s*기다려\s*주세요)\W*""",
    _FLAGS,
)
"""Matches a last sentence that asks the user to wait."""
_NEXT = re.compile(
    r"\W*(?:(?:ok(?:ay)?|so|now|and)\W+)*(?:(?:the|my)\s+)?next(?:\s+(?:action|call|step|tool))?(?:\s+is)?\W+"
    r"(?:to\s+(?:call|use)\s+)?(?P<tool>\w[\w ]*?)\W*",
    re.IGNORECASE,
)
"""Matches a last sentence that names a tool as the next step."""
_STEP = re.compile(rf"{_FILLER}(?:(?:the|my)\s+)?next\s+step(?:\s+is(?:\s+to)?|:)\s(?P<action>.*)", _FLAGS | re.DOTALL)
"""Matches an answer that only names the next step. After other text, the step may be meant for the user."""
_HERE = re.compile(r"\W*(?:here(?:\s+is|\s+are|['’]s)|first,|now,|then,)\s.*(?:[:：]|…|\.\.\.)\s*$", re.IGNORECASE)
"""Matches a sentence that announces something and ends with a colon or dots."""
_CONTINUES = re.compile(r":\s+\S+\s+\S|：\S")
"""Matches a sentence that has the announced text after a colon."""
_NOT_NOW = re.compile(
    r"""\?|？|\b(?:if|once|when|after)\s+you\b|\bonce\s+(?:i|it|the|they|we|your)\b|\b(?:as\s+soon\s+as|whenever|until|unless|let\s+me\s+know|tomorrow|later|always)\b
    |\b(?:in\s+the\s+future|from\s+now\s+on|next\s+time|from\s+here\s+on)\b|\bplease\s+(?!\w*ll)\w+|\b(?:could|would)\s+you\b
    |\b(?:wenn|sobald|bitte)\b|\bsi\s+(?:vous|tu|me|quieres|desea)\b|\b(?:dès\s+que|quand|cuando|quando|por\s+favor)\b
    |\bse\s+(?:vuoi|mi)\b|\b(?:пожалуйста|если|когда)\b|请|如果|ください|もし|[よたけせれ]れば|주시면|원하시면""",
    _FLAGS,
)
_WRITING = re.compile(
    r"""\b(?:translat|rephras|paraphras|rewrite|reword|draft|compose|role-?play|pretend|proofread|dummy|lorem|
    übersetz|formulier|antworte|tradu|rédige|redact|перевед)\w*|翻译|翻訳|번역
    |\bhow\s+(?:do|would)\s+\w+\s+say\b|\b(?:reply|respond)\s+to\b|\b(?:a|your)\s+reply\b
    |\bwrite\s+(?:an?|the|me|some|two|three)\s+(?:[\w-]+\s+){0,3}(?:e?-?mail|letter|message|reply|story|poem|speech|
    dialogue|sentence|note|text|post|tweet|script|scene)|\b(?:poem|haiku|limerick|joke|slogan|story|essay)\b""",
    _FLAGS,
)
_LETTER = re.compile(
    r"\W*(?:dear|hi|hello|hey|subject:|sehr\s+geehrte|liebe|hallo|cher|chère|bonjour|hola|estimad)\b[^.!?\n]{0,60}\n",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[\"'“(*_`]*\w)|(?<=[。！？])|\n+")


def wants_text(request: str) -> bool:
    """Return whether ``request`` asks to write or translate a text. The answer may then speak for another person."""
    return _WRITING.search(request[-2_000:]) is not None


def announces_action(content: str, request: str = "", tools: Iterable[str] = ()) -> bool:
    """Return whether ``content``, an answer to ``request``, ends by announcing an action, such as the next call of one
    of ``tools``, which are tool names."""
    text = content.rstrip("*_ \t\r\n")
    if not text or text[-1] in "\"”»'’`)]}|>" or wants_text(request) or _LETTER.match(text[:200]):
        return False
    sentences = [piece for piece in _SENTENCE.split(text[-MAX_TAIL:]) if piece.strip()]
    is_to_wait = bool(sentences) and _WAIT.fullmatch(sentences[-1]) is not None
    if not (sentences := sentences[:-1] if is_to_wait else sentences):
        return is_to_wait
    last = sentences[-1].strip()
    if (len(sentences) == 1 and len(text) > MAX_TAIL) or _NOT_NOW.search(" ".join(sentences[-2:])):
        return False
    following = _NEXT.fullmatch(last)
    if following is not None and any(split_words(following["tool"]) == split_words(tool) for tool in tools):
        return True
    step = _STEP.match(last) if len(sentences) == 1 else None
    if step is None and _CONTINUES.search(last):
        return False
    english = step or _ENGLISH.match(last)
    words = split_words(english["action"])[:MAX_WORDS] if english else []
    is_work = words[:2] in (["do", "that"], ["do", "this"]) or not _WORK.isdisjoint(map(stem_word, words))
    return bool((is_work and "not" not in words) or _OTHERS.match(last) or _HERE.match(last))
