"""Guardrails: detect answers that do not advance a task, and decide whether to retry. No I/O."""

__all__ = [
    "call_history",
    "guardrails",
    "invented_file_text",
    "loop_detection",
    "registry",
    "requested_file_changes",
    "required_steps",
    "response_checks",
    "retry_messages",
    "verdicts",
]
