"""Repair edits before matching: escapes, diff markers, indentation."""

__all__ = ["diff_markers", "interpretations", "omissions", "reindent", "unescape", "unicode_escapes"]
