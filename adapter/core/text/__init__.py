"""Text utilities: lines, diffs, truncation, redaction, display escaping and bounded regular expressions."""

__all__ = [
    "delimiters",
    "diffs",
    "display_escaping",
    "lines",
    "plurals",
    "redaction",
    "safe_regex",
    "string_builder",
    "truncate",
]
