"""Redact credentials in transcripts, error messages and responses.

Two kinds of text count as credentials: values of environment variables with names like ``API_KEY``, and text in a form
that only credentials have. They are replaced with ``[redacted ...]``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import overload

from adapter.core.events import Json

SECRET_NAME = re.compile("KEY|TOKEN|SECRET|PASS|AUTH|CREDENTIAL", re.IGNORECASE)
"""Matches names of environment variables that hold credentials."""
MIN_LENGTH = 6
"""Minimum length of a redacted value. Shorter values (``1``, ``true``, ``us``) occur in any text."""
MIN_LINE = 20
"""Minimum length of a line that is redacted separately, if a value has several lines, such as a key file."""
MAX_BUFFERED = 4_096
"""Maximum number of characters that are buffered because they may begin a credential."""

REDACTED = "[redacted"
"""Start of the text that replaces a credential. The name of its environment variable may follow."""

_SHAPES = re.compile(
    r"""(?ix)
    (?=a) ( (?:authorization | api[-_]?key) \\{0,3} ["']? \s{0,3} [:=] \s{0,3} \\{0,3} ["']?
        (?: (?:bearer|basic|token) \s{1,3} )? ) (?! \[redacted ) [^\s"',;}\\]{8,2000}
    | (?=b) ( bearer \s{1,3} ) (?! \[redacted ) [\w.~+/-]{16,2000} =*
    | (?=[arisp]) ( (?:(?:access|auth|refresh|id|session|private)[-_]?token
        | (?:private|secret)[-_]?(?:access[-_]?)?key | secret
        | passw(?:or)?d ) \\{0,3} ["'] \s{0,3} : \s{0,3} \\{0,3} ["'] ) (?! \[redacted ) [^\s"'\\]{8,2000}
    | (?=[psa]) ( (?: passw(?:or)?d | passphrase | secret | (?:access|auth|private|secret)[-_]?(?:token|key) )
        \s{0,3} [:=] \s{0,3} ["'] ) (?! \[redacted ) (?= [^\s"'\\]{0,60}? [\d!@\#$%^&*+] ) [^\s"'\\]{6,2000}
    | (?=[ps-]) ( (?: passw(?:or)?d | passphrase ) [ ]? : [ ]{1,3} | secret_access_key [ ]{0,3} [:=] [ ]{0,3}
        | -- (?: [\w-]{0,30} (?: passw(?:or)?d | passphrase | secret ) | (?:(?:access|api|auth)-)? token | api-?key )
        [= ] ["']? ) (?! \[redacted ) (?= [^\s"',;{}\\()$<>\[\]]{0,60}? [\d!@\#%^&*+] )
        [^\s"',;{}\\()$<>\[\]]{6,2000}+ (?! [(\[] )
    | ( (?-i: \b (?= [A-Z0-9_]{3,300}+ = )
        (?: [A-Z0-9_]{0,60} (?: PASSWORD | PASSWD | PASSPHRASE | SECRET | CREDENTIALS? | APIKEY )
        | (?:[A-Z0-9]{1,30}_){0,6} (?: PASS | PWD | TOKEN | KEY ) ) (?:_[A-Z0-9]{1,20}){0,3} ) = ["']? )
        (?! \[redacted ) [^\s"',;}\\()$<>]{6,2000}+ (?! [(] )
    | ( (?m: ^ ) [ \t]{0,8} (?: export [ ] )? [\w.-]{0,40} (?: passw(?:or)?d | passphrase ) = ["']? )
        (?! \[redacted ) [^\s"',;}\\()$<>]{6,2000}+ (?! [(] )
    | \b (?=[xpa]) ( (?:x-[\w-]{1,30} | private | auth | access)-token \s{0,3} : \s{1,3} ) (?! \[redacted )
        [^\s"',;}\\]{8,2000}
    | \b (?=c) ( cookie ["']? \s{0,3} : \s{0,3} ["']? [\w.-]{1,64} = ) (?! \[redacted ) [^\s"',;}\\]{8,2000}
    | ( [?&\#] (?: key | sig | auth | (?:x-amz-)?signature | (?:[a-z]{1,20}[-_])? (?:token|secret)) = )
        (?! \[redacted ) [^\s"'&\#<>\\]{12,2000}
    | ( [?&;] (?: password | pwd | accountkey | sharedaccesskey ) = ) (?! \[redacted ) [^\s"'&;\#<>\\]{6,2000}
    | ( < [\w:.-]{0,40} passw(?:or)?d > ) (?! \[redacted ) [^\s<>]{6,2000} (?= </ )
    | ( :// [^\s/:@"']{0,100} : ) (?! \[redacted ) [^\s/@"']{1,200} (?=@)
    | ( :// ) (?! \[redacted ) [^\s/:@"']{20,200} (?=@)
    | \b (?=[sghxarnpdye]) (?-i: sk-[\w-]{20,200} | gh[pousr]_[A-Za-z0-9]{36,255} | github_pat_\w{30,255}
        | glpat-[\w-]{20,100}
        | hf_[A-Za-z0-9]{30,100} | xox[abprs]-[\w-]{10,200} | A[KS]IA[0-9A-Z]{16} | AIza[\w-]{35}
        | [sr]k_(?:live|test)_[A-Za-z0-9]{16,200} | npm_[A-Za-z0-9]{36} | pypi-[\w-]{50,300} | gsk_[A-Za-z0-9]{30,100}
        | xapp-[\w-]{20,200} | SG\.[\w-]{16,32}\.[\w-]{32,64} | shp(?:at|ca|pa|ss)_[0-9a-f]{32}
        | do[opr]_v1_[0-9a-f]{64} | dckr_pat_[\w-]{20,100} | ya29\.[\w-]{20,500} | AGE-SECRET-KEY-1[0-9A-Z]{58}
        | eyJ[\w-]{10,500} \. eyJ[\w-]{10,2500} \. [\w-]{10,1000} ) \b
    | -----BEGIN [A-Z ]{0,40} PRIVATE\ KEY(?:\ BLOCK)?----- [^-]{0,10000}
        -----END [A-Z ]{0,40} PRIVATE\ KEY(?:\ BLOCK)?-----
    """
)
"""Matches credentials in headers, JSON fields and URLs, JSON Web Tokens, private keys, and keys with the prefixes of
GitHub, GitLab, OpenAI, Slack and others.

If the text before a credential identifies it, a group contains that text. Each lookahead lists the possible first
letters of an alternative; without the lookaheads, a search takes 50 % longer.
"""
_KEYWORDS = (
    "authorization", "apikey", "api-key", "api_key", "bearer", "token", "secret", "passw", "cookie", "://",
    "key=", "key_", "pass=", "pass_", "pwd=", "pwd_", "passphrase",
    "credential", "sig=", "auth=", "signature=", "sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_",
    "glpat-", "hf_", "xox", "akia", "asia", "aiza", "sk_live_", "sk_test_", "rk_live_", "rk_test_", "npm_",
    "pypi-", "gsk_", "eyj", "-----begin ", "pwd", "private", "accountkey", "accesskey", "xapp-", "sg.", "shpat_",
    "shpca_", "shppa_", "shpss_", "_v1_", "dckr_pat_", "ya29."
)  # fmt: skip
"""Lower-case strings such that every match of ``_SHAPES`` contains at least one of them. Searching for them is a
hundred times as fast as searching with the pattern."""
_WINDOW, _LONGEST = 32_768, 12_288
"""Length of the window that is searched at a time, and maximum length of a match, in characters. Other threads can run
between two windows."""
_BEGINNING = re.compile(
    r"(?i)(?:authorization|api[-_]?key|bearer|token|secret|pass(?:w|phrase)|private|auth[-_]?key|access[-_]?key|cookie)[^\n]{0,20}\S{0,2000}\Z"
)
_FIELD = re.compile(
    r"(?i)(?:proxy-)?authorization|(?:set-)?cookie|(?:[\w-]{0,40}[-_])?(?:api[-_]?key|secret|passw(?:or)?d)"
    r"|[\w-]{0,40}(?:access|auth|refresh|id|session|private|secret)[-_]?(?:token|key)"
)
"""Matches names of fields whose value is always a credential."""
MIN_FIELD = 8
"""Minimum length of a value that is redacted because its field's name matches ``_FIELD``."""
_BLOCK_BEGIN, _BLOCK_END = "-----BEGIN ", re.compile(r"-----END [^-]{0,60}-----")
MAX_BLOCK = 12_000
"""Maximum length of a private key, from its first line to its last."""
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
"""Characters that URLs do not encode (RFC 3986, 2.3)."""


class Redactor:
    """Replaces credentials in text: secret values of the variables in ``environment``, the values in ``known``, and
    text that has the form of a credential."""

    def __init__(self, environment: Mapping[str, str], known: Iterable[str | None] = ()) -> None:
        values = {value: name for name, value in environment.items() if SECRET_NAME.search(name)}
        values |= {value: "" for value in known if value}
        self._names: dict[str, str] = {}
        for value, name in values.items():
            # The path of a socket or directory (SSH_AUTH_SOCK, PASSWORD_STORE_DIR) is not a secret.
            if len(value) >= MIN_LENGTH and not re.fullmatch(r"(?:/[\w.@+-]+){2,}/?", value):
                self._names |= dict.fromkeys(_list_spellings(value), name)
        longest_first = sorted(self._names, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        self._spaced = [value for value in longest_first if re.search(r"\s", value)]

    @overload
    def redact(self, value: str) -> str: ...
    @overload
    def redact(self, value: Json) -> Json: ...
    def redact(self, value: Json) -> Json:
        """Redact text, or every string in a JSON value."""
        if isinstance(value, str):
            return "".join(self.redact_pieces([value]))
        if isinstance(value, Mapping):
            return {self.redact(key): self._redact_field(key, inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.redact(inner) for inner in value]
        return value

    def _redact_field(self, name: str, value: Json) -> Json:
        redacted = self.redact(value)
        is_secret = isinstance(redacted, str) and len(redacted) >= MIN_FIELD and _FIELD.fullmatch(name) is not None
        return f"{REDACTED}]" if is_secret and REDACTED not in redacted else redacted

    def redact_bytes(self, content: bytes) -> bytes:
        """Redact a file's content, which may be text or binary."""
        return self.redact(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def redact_pieces(self, pieces: Sequence[str]) -> list[str]:
        """Redact text that is split into pieces, and return the pieces. A credential may extend over several pieces.
        The replacement is then in the first of them."""
        text = "".join(pieces)
        spans = list(self._find_spans(text))
        redacted, end = [], 0
        for piece in pieces:
            start, end = end, end + len(piece)
            kept, at = [], start
            for _, first, last, replacement in spans:
                if last <= start or first >= end:
                    continue
                kept.append(text[at : max(first, at)])
                kept.append(replacement if first >= start else "")
                at = min(last, end)
            redacted.append("".join(kept) + text[at:end])
        return redacted

    def find_safe_prefix(self, pieces: Sequence[str]) -> set[int]:
        """Return each number n such that the first n ``pieces`` can be redacted before more text arrives. No credential
        extends beyond these pieces."""
        text = "".join(pieces)
        limit, spans = self._find_limit(text), list(self._find_spans(text))
        ends = enumerate(accumulate(map(len, pieces)), start=1)
        return {
            count for count, end in ends if end <= limit and not any(start < end < last for start, _, last, _ in spans)
        }

    def _find_limit(self, text: str) -> int:
        """Return the index at which a credential may begin that is incomplete at the end of ``text``."""
        starts = [_find_word_start(text, len(text))]
        if lead := _BEGINNING.search(text, max(len(text) - 2 * MAX_BUFFERED, 0)):
            starts.append(_find_word_start(text, lead.start()))  # "client_secret" is a keyword, "secret" alone is not
        block = text.rfind(_BLOCK_BEGIN, max(len(text) - MAX_BLOCK, 0))
        if block >= 0 and not _BLOCK_END.search(text, block):
            starts.append(block)
        for value in self._spaced:
            starts += [len(text) - size for size in range(1, len(value)) if text.endswith(value[:size])]
        return min(starts)

    def _find_spans(self, text: str) -> Iterator[tuple[int, int, int, str]]:
        """Yield, for each credential, the start of the text that identifies it, its own start and end, and its
        replacement."""
        spans = [
            (match.start(), match.start(), match.end(), self._build_replacement(match[0]))
            for match in self._values.finditer(text)
        ]
        for match in _find_shapes(text):
            lead = match[match.lastindex] if match.lastindex else ""
            spans.append((match.start(), match.start() + len(lead), match.end(), f"{REDACTED}]"))
        end = 0
        for lead_start, start, last, replacement in sorted(spans, key=lambda span: span[1]):
            if start >= end:
                yield lead_start, start, last, replacement
                end = last

    def _build_replacement(self, value: str) -> str:
        name = self._names.get(value, "")
        return f"{REDACTED} {name}]" if name else f"{REDACTED}]"


def _find_word_start(text: str, end: int) -> int:
    """Return the start of the word that ends at ``end``, at most `MAX_BUFFERED` characters before ``end``."""
    head = text[max(end - MAX_BUFFERED, 0) : end]
    return end if not head or head[-1].isspace() else end - len(head.rsplit(None, 1)[-1])


def _find_shapes(text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of ``_SHAPES`` in ``text``. It is searched in windows, between which other threads can run."""
    at = 0
    for start in range(0, len(text), _WINDOW):
        stop, end = start + _WINDOW, start + _WINDOW + _LONGEST
        folded = text[start:end].casefold()
        if any(keyword in folded for keyword in _KEYWORDS):
            for match in _SHAPES.finditer(text, max(at, start), end):
                if match.start() >= stop:
                    break
                yield match
                at = match.end()


def _list_spellings(value: str) -> Iterator[str]:
    """Yield ``value`` verbatim, encoded for JSON and for a URL, and each long line of a multi-line value."""
    yield value
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    encoded = value.encode("utf-8", "surrogateescape")
    yield "".join(chr(byte) if chr(byte) in _UNRESERVED else f"%{byte:02X}" for byte in encoded)
    lines = value.splitlines()
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= MIN_LINE)
