"""Assistance for models too small to choose a tool: a shortlist of tools, candidate values, and a call threshold."""

__all__ = ["assist", "grounding", "tool_shortlist"]
