"""One conversation without I/O: what is asked for next, what the model is shown again, and what fits."""

__all__ = ["message_content", "message_rendering", "session", "token_estimate", "verbatim_history"]
