"""The state machine of a conversation, the history shown to the model, and the context limit. No I/O."""

__all__ = [
    "client_conversation_trimming",
    "message_content",
    "message_rendering",
    "session",
    "session_steps",
    "token_estimate",
    "verbatim_history",
]
