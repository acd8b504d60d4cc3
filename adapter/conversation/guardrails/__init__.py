"""Guardrails: detect answers that do not advance a task, and decide whether to retry. No I/O."""

__all__ = [
    "call_history",
    "engine",
    "file_requests",
    "loop_detection",
    "registry",
    "required_steps",
    "response_checks",
    "retry_messages",
    "unfounded_text",
    "verdicts",
]
