"""Provide capabilities beyond files and processes: questions, editor, search, documentation, notes and nested calls."""

__all__ = [
    "host_capabilities", "host_operation_planner", "http_search_and_docs", "local_search", "predefined_search_services",
]  # fmt: skip
