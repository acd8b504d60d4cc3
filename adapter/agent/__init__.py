"""The agent loop between a model, a workspace and the user, and its sub-agents."""

__all__ = ["agent", "async_agent", "base_agent", "prompt_setup", "response_reader", "subagents"]
