"""The agent loop between a model, a workspace and the user, and its sub-agents."""

__all__ = ["agent", "answer_reader", "async_agent", "base_agent", "prompt_setup", "subagents"]
