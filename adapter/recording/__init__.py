"""Conversations kept as files: their form, how they are written, and how they run again."""

__all__ = [
    "chat_store",
    "exchange_log",
    "html",
    "recorder",
    "replay",
    "replay_files",
    "replay_workspace",
    "resume",
    "training_formats",
    "training_samples",
    "transcript",
]
