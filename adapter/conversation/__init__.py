"""One conversation, without I/O: its next step, the history shown to the model, and the context limit."""

__all__ = ["message_content", "message_rendering", "session", "token_estimate", "verbatim_history"]
