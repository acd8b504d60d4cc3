"""Repair edits before they are matched: escapes, diff markers, indentation."""

__all__ = ["diff_markers", "interpretations", "reindent", "unescape"]
