"""Parse source text into a syntax tree, within a time limit. Text with syntax errors also yields a tree."""

from __future__ import annotations

import importlib
import re
import time
from functools import cache
from typing import TYPE_CHECKING

from adapter.core.errors import ToolError
from adapter.core.install_advice import build_install_command
from adapter.outline.language import Language

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Tree

PARSE_SECONDS = 5.0
"""Time limit for parsing a file, in seconds."""
_BLOCK_BYTES = 1_048_576


class MissingGrammar(ToolError):
    """The optional package with a language's grammar is not installed."""


def get_parser(language: Language) -> Parser:
    """Return a language's parser. Raises MissingGrammar, which names the command that installs the grammar."""
    try:
        return _load_parser(language.grammar, language.loader)
    except ImportError as error:
        raise MissingGrammar(
            f"outlines of {language.name} need {error.name or language.grammar}, which is not installed "
            f"({build_install_command('index')}); read the file instead"
        ) from None


@cache
def _load_parser(grammar: str, loader: str) -> Parser:
    import tree_sitter

    return tree_sitter.Parser(tree_sitter.Language(getattr(importlib.import_module(grammar), loader)()))


def parse(source: bytes, language: Language, deadline: float) -> Tree:
    """Parse ``source``. Raises ToolError if this is not finished at ``deadline``, a time of `time.monotonic`."""
    parser = get_parser(language)
    if language.blanked:
        source = language.blanked.sub(_replace_macro, source)
    try:
        return parser.parse(
            lambda offset, _: source[offset : offset + _BLOCK_BYTES],
            progress_callback=lambda *_: time.monotonic() > deadline,
        )
    except ValueError:  # raised by the binding if the callback stopped the parser
        parser.reset()
        raise ToolError(f"parsing the code as {language.name} took too long; read the file instead") from None


def _replace_macro(found: re.Match[bytes]) -> bytes:
    """Return the text of a match of `Language.blanked` with its group replaced by spaces or, for the group ``type``, a
    type. Line feeds and the length are unchanged."""
    start, end = (edge - found.start() for edge in found.span(found.lastindex or 0))
    spaces = re.sub(rb"[^\n]", b" ", found[0][start:end])
    replacement = b"int" + spaces[3:] if found.lastgroup == "type" else spaces
    return found[0][:start] + replacement + found[0][end:]


def find_first_syntax_error(text: str, language: Language, seconds: float) -> int | None:
    """Return the 1-based line of the first syntax error, or None. Raises MissingGrammar, or ToolError if parsing takes
    longer than ``seconds``."""
    root = parse(text.encode("utf-8", "replace"), language, time.monotonic() + seconds).root_node
    return find_first_error_line(root) if root.has_error else None


def find_first_error_line(node: Node) -> int:
    """Return the 1-based line of the first syntax error in ``node``."""
    while not (node.is_error or node.is_missing):
        child_with_error = next((child for child in node.children if child.has_error or child.is_missing), None)
        if child_with_error is None:
            break
        node = child_with_error
    return node.start_point[0] + 1
