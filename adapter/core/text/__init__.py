"""What is done with text of any kind: lines, differences, cuts, and what must not be shown or written."""

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
