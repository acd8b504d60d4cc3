"""Manage a conversation with a model: its state, the history shown to the model, and the context limit. No I/O."""

__all__ = [
    "client_conversation_trimming",
    "message_content",
    "message_rendering",
    "session",
    "session_steps",
    "token_estimate",
    "verbatim_history",
]
