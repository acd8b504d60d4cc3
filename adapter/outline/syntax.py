"""Source text as a syntax tree, in bounded time. A file with mistakes still has one."""

from __future__ import annotations

import importlib
import re
import time
from functools import cache
from typing import TYPE_CHECKING

from adapter.core.errors import ToolError
from adapter.outline.language import Language

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Tree

PARSE_SECONDS = 5.0
"""For reading one file."""
_BLOCK_BYTES = 1_048_576


class MissingGrammar(ToolError):
    """The optional packages that read a language are not installed."""


def parser_for(language: Language) -> Parser:
    """Raises MissingGrammar that says what to install."""
    try:
        return _parser(language.grammar, language.loader)
    except ImportError as error:
        raise MissingGrammar(
            f"outlines of {language.name} need {error.name or language.grammar}, which is not installed "
            "(pip install 'toolcall-adapter[index]'); read the file instead"
        ) from None


@cache
def _parser(grammar: str, loader: str) -> Parser:
    import tree_sitter

    return tree_sitter.Parser(tree_sitter.Language(getattr(importlib.import_module(grammar), loader)()))


def parse(source: bytes, language: Language, deadline: float) -> Tree:
    parser = parser_for(language)
    if language.blanked:
        source = language.blanked.sub(_without_macro, source)
    try:
        return parser.parse(
            lambda offset, _: source[offset : offset + _BLOCK_BYTES],
            progress_callback=lambda *_: time.monotonic() > deadline,
        )
    except ValueError:  # how the binding says that the callback ended it
        parser.reset()
        raise ToolError(f"reading the code as {language.name} took too long; read the file instead") from None


def _without_macro(found: re.Match[bytes]) -> bytes:
    """The match with its group blanked, or a type in its place; every other byte and line end stays."""
    start, end = (edge - found.start() for edge in found.span(found.lastindex or 0))
    blanks = re.sub(rb"[^\n]", b" ", found[0][start:end])
    instead = b"int" + blanks[3:] if found.lastgroup == "type" else blanks
    return found[0][:start] + instead + found[0][end:]


def first_syntax_error(text: str, language: Language, seconds: float) -> int | None:
    """The 1-based line of the first place that the grammar does not know, if there is any. Raises MissingGrammar,
    and ToolError when it takes longer than ``seconds``."""
    root = parse(text.encode("utf-8", "replace"), language, time.monotonic() + seconds).root_node
    return mistake_line(root) if root.has_error else None


def mistake_line(node: Node) -> int:
    """The line of the first mistake at or below ``node``."""
    while not (node.is_error or node.is_missing):
        following = next((child for child in node.children if child.has_error or child.is_missing), None)
        if following is None:
            break
        node = following
    return node.start_point[0] + 1
