"""Recordings of conversations and exchanges: write, replay, view and export them."""

__all__ = [
    "chat_store", "exchange_log", "file_replay", "html_pages", "replay", "replay_result", "replay_workspace",
    "restore_chat", "session_recorder", "training_formats", "training_samples", "transcript", "transcript_lines",
]  # fmt: skip
