"""Answers that hold nothing of the matter: that no help is possible, without a reason, or that all is done.

An answer is cut into clauses, and each must be of this kind: one that names anything else is no such answer.
"""

from __future__ import annotations

import re

MAX_HOLLOW = 240
"""Characters of such an answer."""

_FLAGS = re.IGNORECASE | re.VERBOSE
_CLAUSE = re.compile(
    r"(?:[.,:;!?…]+(?:\s+|$)|\n+)(?:(?:and|but|so)\s+)?|\s+(?:and|but|so)\s+(?=i\b|the\b)", re.IGNORECASE
)

_IT = r"""(?:this|that|it
    |(?:this|that|your|such\s+an?)\s+(?:action|kind\s+of\s+(?:request|task)|query|question|request|task)
    |(?:actions?|requests?|tasks?|things?|something)\s+like\s+(?:this|that))"""
_SYSTEMS = r"""(?:the\s+internet|such\s+(?:data|information|systems|tools)
    |(?:any\s+)?(?:external|live|outside|real-?time)\s+(?:data|information|resources|services|sources|systems|tools))"""
_APOLOGY = re.compile(
    r"""(?:(?:i\s*['’]?m|i\s+am)\s+)?(?:(?:really|so|truly|very)\s+)?sorry(?:\s+(?:about|for)\s+(?:that|this))?
    |unfortunately|i\s+apologi[sz]e(?:\s+for\s+(?:that|this|the\s+inconvenience))?
    |as\s+an?\s+(?:ai|(?:large\s+)?language\s+model)(?:\s+(?:assistant|language\s+model|model))?""",
    _FLAGS,
)
_HELPLESS = re.compile(
    rf"""(?:(?:but|so|and|unfortunately|as\s+an?\s+(?:ai|(?:large\s+)?language\s+model))\s+)*i\s*
    (?:(?:cannot|can\s+not|can['’]?t|(?:am|['’]m)\s+(?:not\s+able|unable)\s+to|won['’]?t\s+be\s+able\s+to
        |(?:do\s+not|don['’]?t)\s+have\s+the\s+(?:ability|capability|means)\s+to)\s+
      (?:(?:currently|directly)\s+)?
      (?:(?:access|answer|check|complete|do|find|fulfil+|handle|perform|process)\s+{_IT}|look\s+{_IT}\s+up|look\s+up\s+{_IT}|perform\s+actions)
    |(?:(?:do\s+not|don['’]?t)\s+have(?:\s+any)?|have\s+no|lack)\s+access\s+to\s+
      (?:{_IT}|{_SYSTEMS})(?:\s+or\s+{_SYSTEMS})*)""",
    _FLAGS,
)
_UNWILLING = re.compile(
    rf"""(?:(?:but|so|and)\s+)*i\s*(?:(?:cannot|can\s+not|can['’]?t|(?:am|['’]m)\s+(?:not\s+able|unable)\s+to)\s+)
    (?:assist|help)(?:\s+you)?(?:\s+(?:out|(?:out\s+)?with\s+{_IT}))?""",
    _FLAGS,
)
"""May be what has to be said to a request that is not to be served."""
_ELSEWHERE = re.compile(
    r"""please\s+(?:check|do|look|try|verify)(?:\s+(?:it|that|this))?(?:\s+up)?\s+(?:elsewhere|manually|yourself)
    |(?:is|was)\s+there\s+anything\s+else(?:\s+(?:i\s+can|you)\b.*)?|anything\s+else
    |let\s+me\s+know\s+if\s+(?:there['’]?s|there\s+is|you\s+(?:have|need|want))\b.*""",
    _FLAGS,
)
_DONE = re.compile(
    r"""(?:(?:ok(?:ay)?|great|sure|yes)\s+)?
    (?:(?:all|everything|it|that|this|(?:the|your)\s+(?:job|request|task|work))\s*)?(?:(?:['’]s|has\s+been|is|was)\s+)?
    (?:(?:all|already|now|successfully)\s+)*(?:completed?|done|finished|set|taken\s+care\s+of)
    (?:\s+(?:as\s+(?:you\s+)?(?:asked|expected|requested|wanted)|for\s+you|now|successfully))*
    |i\s*(?:\s+have|['’]ve)?\s+(?:completed|did|done|finished|taken\s+care\s+of)\s+
      (?:all\s+of\s+it|everything|it|that|this|(?:the|your)\s+(?:job|request|task))
      (?:\s+(?:as\s+(?:you\s+)?(?:asked|requested)|for\s+you|successfully))*
    |the\s+(?:outcome|result)\s+is\s+as\s+(?:asked|expected|wanted)""",
    _FLAGS,
)
_ASKS = re.compile(
    r"""\b(?:what|which|who|whose|where|when|how\s+(?:far|high|large|long|many|much|old|warm))\b(?!\s+(?:about|if)\b)[^.?!]*\?
    |\b(?:give|tell)\s+(?:me|us)\b(?!\s+(?:when|once|as\s+soon)\b)""",
    _FLAGS,
)
_ASKS_WHETHER = re.compile(r"\b(?:complete|done|finished|progress|ready|stat(?:e|us))\b", re.IGNORECASE)
"""To these "It is done." is an answer."""


def is_helpless(content: str) -> bool:
    """Whether the answer says that the model is not able to do it, and not what, nor why."""
    return _is_made_of(content, _HELPLESS, _UNWILLING, _APOLOGY, _ELSEWHERE)


def is_unwilling(content: str) -> bool:
    """Whether the answer says that there is no help, and no more."""
    return _is_made_of(content, _UNWILLING, _APOLOGY, _ELSEWHERE)


def says_only_done(content: str) -> bool:
    """Whether the answer says that all is done, and nothing of what came of it."""
    return _is_made_of(content, _DONE, _ELSEWHERE)


def asks_for_something(request: str) -> bool:
    """Whether ``request`` wants something to be told, so that "Done." is no answer."""
    return any(not _ASKS_WHETHER.search(asked[0]) for asked in _ASKS.finditer(request[-2_000:]))


def _is_made_of(content: str, needed: re.Pattern[str], *others: re.Pattern[str]) -> bool:
    if not content or len(content) > MAX_HOLLOW:
        return False
    clauses = [clause for piece in _CLAUSE.split(content) if (clause := piece.strip(" \t*_\"'"))]
    return any(map(needed.fullmatch, clauses)) and all(
        any(kind.fullmatch(clause) for kind in (needed, *others)) for clause in clauses
    )
