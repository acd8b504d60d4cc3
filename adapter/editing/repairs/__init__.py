"""Repair edits before matching: escapes, diff markers, indentation."""

__all__ = ["diff_markers", "interpretations", "omission_markers", "reindent", "unescape", "unicode_escapes"]
