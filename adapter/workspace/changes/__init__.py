"""Change files atomically, and record the changes for undo and redo."""

__all__ = ["encoding_detection", "history", "journal", "plan", "read_tracker", "staging", "text_codec", "transactions"]
