"""Answers that do not bring a task on: recognised, and what is to be done about them. No I/O."""

__all__ = ["call_history", "engine", "registry", "required_steps", "response_checks", "retry_messages"]
