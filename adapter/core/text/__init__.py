"""Text utilities: lines, diffs, truncation, redaction, display escaping and bounded regular expressions."""

__all__ = [
    "diffs",
    "display_escaping",
    "lines",
    "plurals",
    "redaction",
    "safe_regex",
    "split_around",
    "string_builder",
    "truncate",
]
