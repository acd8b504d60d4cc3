"""How many tokens a text takes in a model's context."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex

_PIECE = r"'(?:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
"""How Qwen's and, nearly so, Llama's tokenizers cut a text before they look at its pieces."""
_LETTERS = 9
"""Of a word that are one token; and bytes of what is no word."""
_BYTES = 2.5


def estimate_tokens(text: str) -> int:
    """About how many tokens ``text`` is, without anybody's vocabulary.

    On this package's prompts within 7 percent of what Qwen's tokenizer counts, which is that of Qwen 2 and 3;
    small vocabularies (SmolLM2, Llama 2) take some 10 percent more. Text that is not English takes more than this says.
    """
    return sum(_tokens(piece.strip()) for piece in _pieces().findall(text))


@cache
def _pieces() -> regex.Pattern[str]:
    import regex

    return regex.compile(_PIECE)


def _tokens(piece: str) -> int:
    if not piece:
        return 1
    size = len(piece) / _LETTERS if piece[-1].isalpha() else len(piece.encode("utf-8", "surrogatepass")) / _BYTES
    return -int(-size // 1)
