"""Provide capabilities beyond files and processes: questions, editor, search, documentation, notes and nested calls."""

__all__ = ["host_capabilities", "host_planner", "http_providers", "local_search", "search_services"]
