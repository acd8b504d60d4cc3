"""Convert HTML to text or Markdown, as a job of `adapter.workspace.sandbox.bounded_worker`.

Python's `html.parser` takes quadratic time for tags, comments and quotes that are not closed. So the page is first
split into tokens in linear time. Conversion to text needs only the tokens. For Markdown, they are first serialized to
plain HTML. This file imports no module of the package.
"""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

MAX_DEPTH = 300
"""Maximum nesting of elements in a page that becomes Markdown."""
MAX_TAGS = 50_000
"""Maximum number of tags in a page that becomes Markdown. Each takes about two kilobytes."""
MAX_ATTRIBUTES = 50
"""Maximum number of attributes of a tag that are used."""
RECURSION = 20_000
"""Python's recursion limit during the conversion, which takes several frames per level."""

HIDDEN = frozenset({"script", "style", "noscript", "template", "svg"})
_RAW = frozenset({"script", "style"})
_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr")
)
_NAME = re.compile(r"[A-Za-z][^\s/>]{0,100}")
_ATTRIBUTE = re.compile(r"""[\s/]*([^\s/>=<"'][^\s/>=<]*)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]*)))?|[\s/]*["'=]+""")
"""An attribute with its value, or stray characters. Each match starts where the previous one ended."""
_END = re.compile(r"[\s/]*>?")


class Token(NamedTuple):
    """A run of text, or a tag. For a tag, ``text`` is its name in lower case."""

    kind: Literal["text", "start", "empty", "end"]
    text: str
    attributes: tuple[tuple[str, str], ...] = ()


def run(data: bytes, format: str) -> Iterator[list[str]]:
    """Yield one list: the converted page, followed by a note if it is too complex for the requested format."""
    page = data.decode("utf-8", "surrogatepass")
    if format == "text":
        yield [to_text(page)]
    elif is_too_complex(page):
        yield [to_text(page), "the page is nested too deeply, or has too many elements, for markdown: this is its text"]
    else:
        yield [to_markdown(page)]


def split_tokens(page: str) -> Iterator[Token]:
    """Split a page into tokens, in linear time. Comments, and an unfinished tag at the end, are skipped."""
    lower = page.lower()
    if len(lower) != len(page):  # some letters have a lower case of two characters
        lower = page
    position = text_start = 0
    while True:
        start = page.find("<", position)
        following = page[start + 1 : start + 2]
        if start >= 0 and not (following.isascii() and following.isalpha()) and following not in ("/", "!", "?"):
            position = start + 1  # a plain character
            continue
        if text := page[text_start : len(page) if start < 0 else start]:
            yield Token("text", text)
        if start < 0:
            return
        if following.isalpha():
            token, position = _take_start_tag(page, start)
            if token is None:
                return
            yield token
            if token.kind == "start" and token.text in _RAW:
                position = _find_position_after(lower, f"</{token.text}", position, keep=True)
        elif following == "/":
            name = _NAME.match(page, start + 2)
            position = _find_position_after(page, ">", start)
            if name and position > 0:
                yield Token("end", name[0].lower())
        else:
            ending = "-->" if page.startswith("<!--", start) else ">"
            position = _find_position_after(page, ending, start + 2)
        if position < 0:
            return
        text_start = position


def _find_position_after(page: str, ending: str, position: int, *, keep: bool = False) -> int:
    """Return the position after the next ``ending`` or, if ``keep`` is true, before it. Return -1 if there is none."""
    index = page.find(ending, position)
    return index if index < 0 or keep else index + len(ending)


def _take_start_tag(page: str, start: int) -> tuple[Token | None, int]:
    """Return the tag at ``start``, and the position after it. A ``<`` outside quotes also ends the tag. If the page
    ends within the tag, return None instead of the tag."""
    name = _NAME.match(page, start + 1)
    assert name is not None
    position = name.end()
    attributes: list[tuple[str, str]] = []
    while match := _ATTRIBUTE.match(page, position):
        position = match.end()
        if match[1] and len(attributes) < MAX_ATTRIBUTES:
            attributes.append((match[1].lower(), match[2] or match[3] or match[4] or ""))
    end = _END.match(page, position)
    assert end is not None
    if end.end() == len(page) and not end[0].endswith(">"):
        return None, end.end()
    lowered = name[0].lower()
    is_empty = lowered in _VOID or end[0].endswith("/>")
    return Token("empty" if is_empty else "start", lowered, tuple(attributes)), end.end()


def select_visible_tokens(page: str) -> Iterator[Token]:
    """Yield the tokens outside of `HIDDEN` elements."""
    hidden: list[str] = []
    for token in split_tokens(page):
        if token.text in HIDDEN and token.kind == "start":
            hidden.append(token.text)
        elif token.text in HIDDEN and token.kind == "end":
            if hidden and hidden[-1] == token.text:
                hidden.pop()
        elif not hidden:
            yield token


def is_too_complex(page: str) -> bool:
    depth = count = 0
    for token in select_visible_tokens(page):
        depth = max(depth + {"start": 1, "end": -1}.get(token.kind, 0), 0)
        count += token.kind != "text"
        if depth > MAX_DEPTH or count > MAX_TAGS:
            return True
    return False


def to_text(page: str) -> str:
    return tidy("\n".join(html.unescape(token.text) for token in select_visible_tokens(page) if token.kind == "text"))


def to_markdown(page: str) -> str:
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    sys.setrecursionlimit(RECURSION)
    soup = BeautifulSoup("".join(_render(select_visible_tokens(page))), "html.parser")
    return tidy(MarkdownConverter(heading_style="ATX").convert_soup(soup))


def _render(parts: Iterable[Token]) -> Iterator[str]:
    for token in parts:
        if token.kind == "text":
            yield token.text.replace("<", "&lt;")
        elif token.kind == "end":
            yield f"</{token.text}>"
        else:
            values = (f' {name}="{_escape(value)}"' for name, value in token.attributes)
            yield f"<{token.text}{''.join(values)}{'/' if token.kind == 'empty' else ''}>"


def _escape(value: str) -> str:
    return value.replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")


def tidy(text: str) -> str:
    lines = (line.rstrip() for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"
