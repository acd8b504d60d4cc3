"""Provide capabilities beyond files and processes: questions, editor, search, documentation, notes and nested calls."""

__all__ = ["host", "http_providers", "local_search", "planner", "search_services"]
