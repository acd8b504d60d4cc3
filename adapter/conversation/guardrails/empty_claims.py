"""Detect answers without content: refusals without a reason, and claims of success without an outcome.

An answer is split into clauses. It has no content only if every clause matches a pattern.
"""

from __future__ import annotations

import re

MAX_LENGTH = 240
"""Maximum length of an answer without content, in characters."""

_FLAGS = re.IGNORECASE | re.VERBOSE
_CLAUSE = re.compile(
    r"(?:[.,:;!?…]+(?:\s+|$)|\n+)(?:(?:and|but|so)\s+)?|\s+(?:and|but|so)\s+(?=i\b|the\b)", re.IGNORECASE
)

_IT = r"""(?:this|that|it
    |(?:this|that|your|such\s+an?)\s+(?:action|data|information|kind\s+of\s+(?:request|task)|query|question|request|task)
    |(?:actions?|requests?|tasks?|things?|something)\s+like\s+(?:this|that))"""
_SYSTEMS = r"""(?:the\s+internet|such\s+(?:data|information|systems|tools)
    |(?:any\s+|the\s+)?(?:external|live|necessary|outside|real-?time|requested|required)
      \s+(?:data|information|resources|services|sources|systems|tools))"""
_AI = r"(?:just\s+|only\s+)?an?\s+(?:ai|(?:large\s+)?language\s+model)(?:\s+(?:assistant|language\s+model|model))?"
_FIRST = rf"""(?:(?:and|but|so|unfortunately|as\s+{_AI}|i\s*(?:['’]m|\s+am)\s+(?:afraid|sorry)|i\s+regret)\s+
    (?:that\s+)?)*"""
_CANNOT = r"""i\s*(?:\s(?:currently|simply)\s+)?(?:cannot|can\s+not|can['’]?t|won['’]?t\s+be\s+able\s+to
    |(?:am|['’]m)\s+(?:(?:currently)\s+)?(?:not\s+able|unable)\s+to
    |(?:do\s+not|don['’]?t)\s+have\s+the\s+(?:ability|capability|means)\s+to)\s+(?:(?:currently|directly)\s+)?"""
_NOW = r"(?:\s+(?:at\s+(?:the|this)\s+(?:moment|time)|currently|right\s+now))?"
_APOLOGY = re.compile(
    rf"""(?:(?:i\s*['’]?m|i\s+am)\s+)?(?:(?:really|so|truly|very)\s+)?sorry(?:\s+(?:about|for)\s+(?:that|this))?
    |unfortunately|i\s+apologi[sz]e(?:\s+for\s+(?:that|this|the\s+inconvenience))?|i\s*['’]?m\s+afraid
    |(?:as|i\s*['’]?m)\s+{_AI}""",
    _FLAGS,
)
_HELPLESS = re.compile(
    rf"""{_FIRST}(?:{_CANNOT}
      (?:(?:access|answer|check|complete|do|find|fulfil+|handle|perform|process)\s+{_IT}|look\s+{_IT}\s+up|look\s+up\s+{_IT}
        |perform\s+actions){_NOW}
    |i\s+(?:currently\s+)?(?:(?:do\s+not|don['’]?t)\s+have(?:\s+any)?|have\s+no|lack)\s+access\s+to\s+
      (?:{_IT}|{_SYSTEMS})(?:\s+or\s+{_SYSTEMS})*{_NOW})""",
    _FLAGS,
)
_UNWILLING = re.compile(
    rf"{_FIRST}{_CANNOT}(?:assist|help)(?:\s+you)?(?:\s+(?:out|(?:out\s+)?with\s+{_IT}))?{_NOW}", _FLAGS
)
"""Matches refusals that may be right, because some requests must be refused."""
_ELSEWHERE = re.compile(
    r"""please\s+(?:check|do|look|try|verify)(?:\s+(?:it|that|this))?(?:\s+up)?\s+(?:elsewhere|manually|yourself)
    |(?:is|was)\s+there\s+anything\s+else(?:\s+(?:i\s+can|you)\b.*)?|anything\s+else
    |let\s+me\s+know\s+if\s+(?:there['’]?s|there\s+is|you\s+(?:have|need|want))\b.*""",
    _FLAGS,
)
_TASK = r"(?:action|job|operation|process|request|task|work)"
_SO = r"(?:\s+(?:as\s+(?:you\s+)?(?:asked|expected|requested|wanted)|for\s+you|now|successfully))*"
_ENDED = r"(?:completed?|done|executed|finished|performed|processed|set|successful|taken\s+care\s+of)"
_DONE = re.compile(
    rf"""(?:(?:ok(?:ay)?|great|sure|yes)\s+)?success
    |(?:(?:ok(?:ay)?|great|sure|yes)\s+)?(?:(?:all|everything|it|that|this|(?:(?:the|your)\s+(?:requested\s+)?)?{_TASK})\s*)?
      (?:(?:['’]s|has\s+been|is|was)\s+)?(?:(?:all|already|now|successfully)\s+)*{_ENDED}{_SO}
    |i\s*(?:\s+have|['’]ve)?\s+(?:successfully\s+)?(?:completed|did|done|finished|taken\s+care\s+of)\s+
      (?:all\s+of\s+it|everything|it|that|this|(?:the|your)\s+{_TASK}){_SO}
    |the\s+(?:outcome|result)\s+is\s+as\s+(?:asked|expected|wanted)""",
    _FLAGS,
)
_PRAISE = re.compile(r"good|great|ok(?:ay)?|perfect|sure|yes", _FLAGS)
_ASKS = re.compile(
    r"""\b(?:what|which|who|whose|where|when|how\s+(?:far|high|large|long|many|much|old|warm))\b(?!\s+(?:about|if)\b)[^.?!]*\?
    |\b(?:give|tell)\s+(?:me|us)\b(?!\s+(?:when|once|as\s+soon)\b)""",
    _FLAGS,
)
_ASKS_WHETHER = re.compile(r"\b(?:complete|done|finished|progress|ready|stat(?:e|us))\b", re.IGNORECASE)
"""Matches questions to which "It is done." is an answer."""


def is_unexplained_refusal(content: str) -> bool:
    """Return whether the answer refuses without naming the task or a reason."""
    return _consists_of(content, _HELPLESS, _UNWILLING, _APOLOGY, _ELSEWHERE)


def is_bare_refusal(content: str) -> bool:
    """Return whether the answer is a refusal and nothing else."""
    return _consists_of(content, _UNWILLING, _APOLOGY, _ELSEWHERE)


def is_bare_success_claim(content: str) -> bool:
    """Return whether the answer claims success without stating an outcome."""
    return _consists_of(content, _DONE, _PRAISE, _ELSEWHERE)


def expects_information(request: str) -> bool:
    """Return whether ``request`` asks for information, so that "Done." is not an answer."""
    return any(not _ASKS_WHETHER.search(question[0]) for question in _ASKS.finditer(request[-2_000:]))


def _consists_of(content: str, needed: re.Pattern[str], *others: re.Pattern[str]) -> bool:
    if not content or len(content) > MAX_LENGTH:
        return False
    clauses = [clause for piece in _CLAUSE.split(content) if (clause := piece.strip(" \t*_\"'"))]
    return any(map(needed.fullmatch, clauses)) and all(
        any(kind.fullmatch(clause) for kind in (needed, *others)) for clause in clauses
    )
