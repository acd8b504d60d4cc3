"""Change files atomically, and record the changes for undo and redo."""

__all__ = [
    "encoding_detection", "history", "journal", "operation_plan", "read_tracker", "staged_files", "text_codec",
    "transactions",
]  # fmt: skip
