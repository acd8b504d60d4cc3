"""Text utilities: lines, diffs, truncation, redaction, display escaping, caches and bounded regular expressions."""

__all__ = [
    "diffs", "display_escaping", "lines", "plurals", "redaction", "safe_regex", "string_builder", "text_cache",
    "truncate", "word_stems"
]  # fmt: skip
