"""Guardrails: detect answers that do not advance a task, and decide whether to retry. No I/O."""

__all__ = ["call_history", "engine", "registry", "required_steps", "response_checks", "retry_messages", "unmade_change"]
