"""Add tool calls to clients of the openai package (`adapter.wrap`)."""

__all__ = ["wrap"]
