"""Write, replay, view and export recordings of conversations and exchanges."""

__all__ = [
    "chat_store", "exchange_log", "file_replay", "html_pages", "replay", "replay_result", "replay_workspace",
    "restore_chat", "session_recorder", "training_formats", "training_samples", "transcript", "transcript_lines",
]  # fmt: skip
