"""What becomes of a change: whole or not at all, on record, and undone again."""

__all__ = ["encoding_detection", "history", "journal", "plan", "read_tracker", "staging", "text_codec", "transactions"]
