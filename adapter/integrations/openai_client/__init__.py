"""`adapter.wrap`: tool calls for clients of the openai package."""

__all__ = ["wrap"]
