"""Atomic, recorded changes of files, with undo and redo."""

__all__ = ["encoding_detection", "history", "journal", "plan", "read_tracker", "staging", "text_codec", "transactions"]
