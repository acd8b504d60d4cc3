"""The loop: a model, a workspace and the person between them; and the sub-agents that it starts."""

__all__ = ["agent", "async_agent", "prompt_setup", "response_reader", "subagents"]
