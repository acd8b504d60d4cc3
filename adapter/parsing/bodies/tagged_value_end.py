"""Find the end of an unescaped value between tags.

A value may contain tags (for example, in a file about tool calls). Therefore, a tag ends the value only if the grammar
allows the text after it::

    <value>ends with </value> here</value><next>      the second </value> ends it
    <value>a.py</call>                                </call> ends it if only another call, or nothing, follows
    <value><call>...</value></call></value></call>    it contains a whole call: the last </value> ends it
    <value>a </call> b</value></call>                 it contains the end of a call: </value> ends it

Text after a tag is peeked at and put back, so each character is read at most a few times.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

from adapter.parsing.marker_set import MarkerSet
from adapter.parsing.stream_buffer import SPACE, Reader, StreamBuffer

SEARCH_LIMIT = 2_000
"""Number of characters after a closing tag that are searched to decide whether the tag is part of a value. If so, the
value is closed again after it."""

TAIL = 100
"""Number of characters before an opening tag that are checked for the end of the preceding value."""

_BROKEN_CLOSE = re.compile(rf"</([{SPACE}]*(?:<[\w:]+>[{SPACE}]*)?)\Z")
_ATTRIBUTE = re.compile(r"\w+(?:=|\||\s+name\s*=)")
_OPEN_BRACKET = re.compile(r"<[\W_]?\Z")
_LAST_TAG = re.compile(r"[<＜\[][^\s<>＜＞\[\]]{1,60}[>＞\])]?\Z")
_SIGNS = str.maketrans("\\[])-=", "/<>>_:")
_LINE_END = re.compile(r"\r?\n[ \t]*\Z")

_GOES_ON = re.compile(r"[.,;:!?)'\"`]?[ \t]+\S|[.,;:!?)'\"`]+\Z|(?:\s*+</[^<>]+>){1,16}+(?=[\s<]|\Z)")
"""Matches text after a closing tag that continues a sentence about tags or a series of closing tags."""

_QUOTED_END = re.compile(r"(?:</[^<>]+>){0,16}+([\"'`])")
"""Matches the text after a quoted tag, up to the quotation mark."""

_WRONG_CLOSE = re.compile(r"(?:</?|\[/?|[/|])[^\s<>\[\]]{1,40}+[>\]]?(?=\s*[^\s>\]])")
_MAY_BE_WRONG_CLOSE = re.compile(r"(?:<|\[|\|)?/?[^\s<>\[\]]{0,40}+[>\]]?\s*")

MayBegin: TypeAlias = Callable[[StreamBuffer, str], Reader[bool]]
"""A function that returns whether the opening tag just consumed begins the next parameter. It consumes no text."""


class RawValue:
    """Finds the end of an unescaped value by the tags that may end it.

    - ``closes``: the closing tags of the value.
    - ``next_opens``: opening tags of the next parameter.
    - ``call_opens``, ``call_closes``: opening and closing tags of a call.
    - ``outer_closes``: closing tags of the section around all calls.
    - ``broken_closes``: the start of closing tags whose word is misspelt.
    - ``stray_closes``: other tags that may come between the closing tags of the value and the call.
    - ``opens_line``: whether a tag of ``next_opens`` ends a value without a closing tag only if it begins a line.
    """

    def __init__(
        self,
        *,
        closes: Sequence[str],
        next_opens: Sequence[str],
        call_opens: Sequence[str],
        call_closes: Sequence[str],
        outer_closes: Sequence[str] = (),
        broken_closes: Sequence[str] = (),
        stray_closes: Sequence[str] = (),
        opens_line: bool = False,
    ) -> None:
        self._opens_line = opens_line
        self._closes, self._next_opens, self._call_closes = map(_lower_tags, (closes, next_opens, call_closes))
        self._call_opens, self._outer_closes = _lower_tags(call_opens), _lower_tags(outer_closes)
        self._all_closes = (*self._call_closes, *self._outer_closes)
        self._tags = MarkerSet(*closes, *next_opens, *call_opens, *call_closes, *outer_closes)
        self._later = MarkerSet(*closes, *call_closes, *call_opens)
        self._ends = MarkerSet(*closes, *outer_closes)
        self._inner = MarkerSet(*closes, *next_opens, *call_closes)
        # A broken close is a prefix of the whole tag, so the set contains both, and the longer one matches.
        whole_closes = closes if broken_closes else ()
        self._after_value = MarkerSet(
            *next_opens, *call_opens, *call_closes, *outer_closes, *stray_closes, *broken_closes, *whole_closes
        )
        self._stray_closes = _lower_tags(stray_closes)
        self._begun_closes, self._opens = MarkerSet(*call_closes, *outer_closes), MarkerSet(*next_opens, *call_opens)
        self._not_after_value = _lower_tags(whole_closes)
        self._after_call = MarkerSet(*call_opens, *outer_closes)

    def consume(self, source: StreamBuffer, value: list[str], may_begin: MayBegin) -> Reader[str | None]:
        """Consume the value, add its text to ``value``, and return its closing tag, which is also consumed.

        If another tag ends the value, do not consume that tag, and return "". Return None if the text ends first.
        ``may_begin`` decides whether an opening tag begins the next parameter.
        """
        holds_call, holds_close, open_parameters, open_calls, begun_calls = False, False, 0, 0, 0
        while True:
            tag = yield from source.read_until(self._tags, value)
            kind = tag.lower()
            if not tag:
                return None
            if (quote := _find_open_quote(value)) and (yield from self._is_quoted(source, quote)):
                value.append(tag)
                continue
            if kind in self._closes:
                has_tags, begun_calls = holds_call or open_parameters > 0, 0  # no parameter follows: only mentioned
                if (yield from self._is_end(source, has_tags, may_begin, is_nested=open_calls > 0)):
                    return tag
                holds_close, open_parameters = True, open_parameters - 1
            elif kind in self._next_opens:
                is_nested = holds_close or open_calls > 0 or begun_calls > 0
                may_end = not is_nested and (not self._opens_line or _is_at_line_start(value))
                if may_end and (yield from may_begin(source, tag)):
                    source.push_back(tag)
                    return ""
                open_parameters, open_calls, begun_calls = open_parameters + 1, open_calls + begun_calls, 0
            elif kind in self._all_closes:
                may_end = kind in self._call_closes or not holds_call
                open_calls, begun_calls = open_calls + begun_calls, 0
                if may_end and (yield from self._ends_call(source, is_nested=open_calls > 0)):
                    source.push_back(tag)
                    return ""
                open_calls = max(0, open_calls - 1)
            elif (section := split_broken_close(value)) is not None:
                source.push_back(section + tag)
                return ""
            else:
                holds_call = True
                begun_calls += _is_at_line_start(value) or _ends_in_tag(value)
            value.append(tag)

    def _is_end(self, source: StreamBuffer, holds_call: bool, may_begin: MayBegin, *, is_nested: bool) -> Reader[bool]:
        """Return whether the value's closing tag that was just consumed ends the value. ``holds_call``: whether the
        value contains a call. If that call is open (``is_nested``), the tag ends a value of that call instead, unless
        no tag follows the call."""
        ahead: list[str] = []
        char = yield from source.skip_space(ahead)
        tag = yield from source.consume_marker(self._after_value, ahead)
        if tag.lower() in self._stray_closes:
            char = yield from source.skip_space(ahead)
            tag = yield from source.consume_marker(self._after_value, ahead)
            tag = tag if tag.lower() in self._call_closes else ""
        if tag.lower() in self._not_after_value:
            tag = ""
        ends = bool(tag) or not char or self._is_begun_close(source)
        ends = ends or (not holds_call and (yield from self._is_wrong_close(source, ahead)))
        if is_nested and char:
            ends = tag.lower() in self._all_closes and (yield from self._find_later(source)) == ""
        elif holds_call and tag.lower() in self._next_opens:
            ends = yield from may_begin(source, tag)
        elif holds_call and tag and tag.lower() not in self._call_opens:
            ends = not (yield from self._continues(source))
        if holds_call and self._is_cut(source):
            ends = False  # it may have closed a value of a nested call
        source.push_back("".join(ahead))
        return ends

    def _is_quoted(self, source: StreamBuffer, quote: str) -> Reader[bool]:
        """Return whether ``quote`` follows the tag just consumed and any closing tags after it."""
        ahead: list[str] = []
        while (yield from source.consume_marker(self._begun_closes, ahead)):
            pass
        yield from source.wait_for_character()
        is_quoted = source.text.startswith(quote, source.position)
        source.push_back("".join(ahead))
        return is_quoted

    def _is_begun_close(self, source: StreamBuffer) -> bool:
        """Return whether the rest of the text is the start of a tag that closes the call rather than opens one."""
        rest = source.text[source.position : source.position + self._after_value.longest]
        return source.final and self._begun_closes.may_start_with(rest) and not self._opens.may_start_with(rest)

    def _is_wrong_close(self, source: StreamBuffer, ahead: list[str]) -> Reader[bool]:
        """Return whether a misspelt or foreign closing tag is next, before the next call or the section's end. Add it
        to ``ahead``."""
        match = yield from source.peek_match(_WRONG_CLOSE, TAIL, _MAY_BE_WRONG_CLOSE.fullmatch)
        if match is None:
            return False
        source.consume_match(match, ahead)
        char, tag = yield from source.peek_after_space(self._after_call)
        ends = tag != "" or (not char and not source.was_cut)
        return ends and (tag.lower() in self._call_opens or not (yield from self._continues(source)))

    def _ends_call(self, source: StreamBuffer, *, is_nested: bool) -> Reader[bool]:
        """Return whether a call's closing tag ends both the value and the call, because only another call, or nothing,
        follows. If a call in the value is open (``is_nested``), nothing may follow."""
        ahead: list[str] = []
        char = yield from source.skip_space(ahead)
        following = yield from source.consume_marker(self._after_call, ahead)
        ends = not char or (following != "" and not is_nested)
        if ends and following:
            later = following if following.lower() in self._call_opens else (yield from self._find_later(source))
            ends = later.lower() in ("", *self._call_opens)
            if ends and later:  # the next call, unless it only closes the value
                ends = (yield from source.peek_marker(self._inner, SEARCH_LIMIT)).lower() not in self._closes
        if self._is_cut(source):
            ends = False  # the value may have continued
        source.push_back("".join(ahead))
        return ends

    def _is_cut(self, source: StreamBuffer) -> bool:
        """Return whether the text was cut off at the current position, or within a tag that the value could have
        continued after."""
        rest = source.text[source.position : source.position + self._ends.longest]
        return source.was_cut and (not rest or self._ends.may_start_with(rest))

    def _continues(self, source: StreamBuffer) -> Reader[bool]:
        """Return whether a tag that seems to end the call is part of the value. If so, the value or the call ends again
        before the next call, or the text may have been cut off before that."""
        later = yield from self._find_later(source)
        return later != "" and later not in self._call_opens

    def _find_later(self, source: StreamBuffer) -> Reader[str]:
        """Return the next tag that closes a value or opens or closes a call, in lower case. Without such a tag, return
        "cut" if it may have been cut off, or ""."""
        marker = yield from source.peek_marker(self._later, SEARCH_LIMIT)
        is_cut = source.was_cut and len(source.text) - source.position <= SEARCH_LIMIT
        return marker.lower() or ("cut" if is_cut else "")


def _is_at_line_start(parts: list[str]) -> bool:
    for part in reversed(parts):
        line = part[part.rfind("\n") + 1 :]
        if line.strip():
            return False
        if "\n" in part:
            return True
    return True


def _find_open_quote(parts: list[str]) -> str:
    """Return the quotation mark that ends the text and opens a quotation on its line, or ""."""
    tail, start = "", len(parts)
    while start and len(tail) < TAIL and "\n" not in tail:
        start -= 1
        tail = (parts[start][-TAIL:] + tail)[-TAIL:]
    line = tail[tail.rfind("\n") + 1 :]
    return line[-1:] if line[-1:] in ('"', "'", "`") and line.count(line[-1]) % 2 else ""


def _ends_in_tag(parts: list[str]) -> bool:
    return next((part for part in reversed(parts) if part.strip()), "").rstrip().endswith(">")


def split_broken_close(value: list[str]) -> str | None:
    """If ``value`` ends with ``</`` and whitespace or another tag, remove and return the text after ``</``. Otherwise,
    return None. A model may write ``</`` instead of a closing tag, and then the section's closing tag."""
    start, size = len(value), 0
    while start and size < TAIL:
        start -= 1
        size += len(value[start])
    if not size:
        return None
    tail = "".join([value[start][-TAIL:], *value[start + 1 :]])
    match = _BROKEN_CLOSE.search(tail)
    if match is None:
        return None
    value[start:] = [value[start][:-TAIL], tail[: match.start(1)]]
    return match[1]


def find_unpaired_tag(value: str, opens: Sequence[str], closes: Sequence[str], calls: Sequence[str] = ()) -> str:
    """Return a tag in ``value`` without its counterpart, or "". The value's end is then uncertain: the tag is part of
    the value, or another tag was lost or written twice.

    This is a closing tag without an opening tag, unless a sentence about tags continues after it. Or it is an opening
    tag without a closing tag, at the start of the value or in an unclosed call that begins with one of ``calls``.
    """
    depth, first, last_close, reopened, lowered = 0, "", "", "", value.lstrip().lower()
    is_opened = lowered.startswith(tuple(tag[:-1].lower() for tag in opens))
    if not is_opened and not any(tag.lower() in lowered for tag in (*closes, *calls)):
        return ""
    for match in _compile_tags(tuple(opens), tuple(closes)).finditer(value):
        quoted = _QUOTED_END.match(value, match.end())
        if quoted is not None and value[max(0, match.start() - 1) : match.start()] == quoted[1]:
            continue
        first = first or match.group()
        depth += 1 if match["open"] else -1
        if depth < 0:
            if not _GOES_ON.match(value, match.end()):
                return match.group()
            depth, last_close = 0, match.group()
        elif match["open"] and last_close and not _GOES_ON.match(value, _find_tag_end(value, match)):
            reopened = last_close
    if depth > 0 and reopened:
        return reopened  # the value's own closing tag, and another value after it
    if depth > 0 and (lowered.startswith(first.lower()) or any(_is_open(tag.lower(), lowered) for tag in calls)):
        return first
    return next((tag[:-1] for tag in opens if lowered.startswith(tag[:-1]) and not lowered.startswith(tag)), "")


def find_joined_close(value: str, closes: Sequence[str]) -> str:
    """Return a closing tag in ``value`` that runs into the next opening tag, as in ``</parameterparameter=KEY>``, or
    ""."""
    for tag in closes:
        start = value.find(tag[:-1])
        if start >= 0 and _ATTRIBUTE.match(value, start + len(tag) - 1):
            return tag
    return ""


def _find_tag_end(value: str, match: re.Match[str]) -> int:
    """Return the end of the tag that ``match`` begins."""
    return match.end() if match.group().endswith(">") else value.find(">", match.end()) + 1


def _is_open(tag: str, value: str) -> bool:
    """Return whether ``value`` contains a call's opening ``tag`` and no matching closing tag after it."""
    return value.rfind(tag) > value.rfind(f"</{tag[1:].rstrip(' =>')}")


@lru_cache(maxsize=256)
def _compile_tags(opens: tuple[str, ...], closes: tuple[str, ...]) -> re.Pattern[str]:
    opening = "|".join(re.escape(tag) + ("" if tag.endswith(">") else r"(?!\w)") for tag in opens)
    return re.compile(rf"(?P<open>{opening})|{'|'.join(map(re.escape, closes))}", re.IGNORECASE)


def find_named_close(value: str, key: str, closes: Sequence[str]) -> str:
    """Return the ``</KEY>`` at the end of ``value``, or "". ``closes`` are the proper closing tags.

    A model may close a value with ``</KEY>`` and then also with the proper tag. But ``</KEY>`` may also be part of the
    value. The two cases can be distinguished only if the value also contains the opening tag.
    """
    close = f"</{key}>"
    is_own = close in closes or not value.rstrip().endswith(close) or f"<{key}" in value
    return "" if is_own else close


def remove_repeated_close(value: str, key: str, closes: Sequence[str]) -> str:
    """Remove closing tags (one of ``closes``, or ``</KEY>``) from the end of ``value``."""
    pieces = re.split(f"({'|'.join(map(re.escape, (f'</{key}>', *closes)))})", value, flags=re.IGNORECASE)
    while len(pieces) > 1 and not pieces[-1].strip():
        del pieces[-2:]
    return "".join(pieces)


def explain_uncertain_end(name: str, key: str, tag: str) -> str:
    """Return the error for a value with ``tag``, which may end it, begin another value, or be part of it."""
    return (
        f"the value of {key!r} in the call of {name!r} contains {tag}, which may begin or end another. Write the call "
        'again without that tag; if it belongs to the value, give the arguments as one JSON object: {"'
        + key
        + '": ...}'
    )


def strip_line_break(value: str) -> str:
    """Return ``value`` without its last line break, which belongs to the tag that ended a value without its own closing
    tag."""
    return _LINE_END.sub("", value)


def remove_broken_close(value: str, key: str, closes: Sequence[str], others: Sequence[str] = ()) -> str:
    """Remove a broken closing tag from the end of ``value``, which was read up to another element's tag. A broken
    closing tag is one of ``closes`` cut off or misspelled, one of ``others``, or ``</KEY>``."""
    bare = value.rstrip()
    for other in others:
        if bare.lower().endswith(other.lower()):
            return bare[: -len(other)]
    if bare.endswith(f"</{key}>") and f"<{key}" not in value:
        return bare[: -len(key) - 3]
    last = _LAST_TAG.search(bare)
    if last is not None and any(_is_look_alike(last.group(), tag, value) for tag in closes):
        return bare[: last.start()]
    whole = [tag for tag in closes if tag.startswith("<") and tag.endswith(">")]
    broken = (*(tag[:-1] for tag in whole), *(tag[1:] for tag in whole), "</")
    found = next((tag for tag in broken if bare.lower().endswith(tag.lower())), "")
    if not found:
        return value
    bare = bare[: -len(found)]
    return bare if found.startswith("<") else _OPEN_BRACKET.sub("", bare)


def _is_look_alike(tag: str, close: str, value: str) -> bool:
    """Return whether ``tag`` is a misspelling of the closing tag ``close``: with different punctuation, cut off at its
    start or end, without its slash, or with more characters, as in ``</parameter1>``, unless ``value`` opens such a
    tag."""
    spelt, expected = (unicodedata.normalize("NFKC", text).translate(_SIGNS).lower() for text in (tag, close))
    is_longer = expected.endswith(">") and spelt.startswith(expected[:-1]) and f"<{tag[2:-1]}" not in value
    is_shorter = len(spelt) > len("</p") and expected.startswith(spelt)
    is_tail = len(spelt) > len("</p>") and expected.endswith(spelt.strip("</"))
    return spelt == expected.replace("/", "") or is_shorter or is_longer or is_tail


def _lower_tags(tags: Sequence[str]) -> tuple[str, ...]:
    return tuple(tag.lower() for tag in tags)
