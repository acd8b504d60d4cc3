"""Detect answers that do not advance a task, and decide whether to retry (guardrails). No I/O."""

__all__ = [
    "announced_action",
    "call_history",
    "candidate_answer",
    "copied_text",
    "guardrails",
    "invented_file_text",
    "loop_detection",
    "refusals_and_claims",
    "registry",
    "requested_file_changes",
    "requested_files",
    "required_steps",
    "retry_messages",
    "unparsed_calls",
    "unused_tool",
    "verdicts",
]
