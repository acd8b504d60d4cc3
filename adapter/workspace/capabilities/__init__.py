"""Provide capabilities beyond files and processes: questions, editor, search, documentation, notes and nested calls."""

__all__ = ["host_interface", "host_planner", "http_providers", "local_search", "search_services"]
