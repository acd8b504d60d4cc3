"""Code that runs inside other programs: clients, MCP, inference engines, Ray, pytest and batch jobs."""

__all__ = []
