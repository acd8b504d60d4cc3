"""Detect answers without content: refusals without a reason, and claims of success without an outcome. English only.

All words of such an answer are stop words, or words that refuse or report success in any task.
"""

from __future__ import annotations

import re

from adapter.prompting.intent.bm25 import stem_words

SEARCHED = 1_000
"""Number of characters at each end of a request that are searched for a question."""
MAX_LENGTH = 240
"""Maximum length of an answer without content, in characters."""

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
