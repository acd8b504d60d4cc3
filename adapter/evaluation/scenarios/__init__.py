"""The built-in scenarios of `adapter eval`."""

__all__ = ["long_context", "stateful", "tool_selection"]
