"""Provide capabilities beyond files and processes: questions, editor, search, documentation, notes and nested calls."""

__all__ = [
    "capability_planner", "function_runner", "host_capabilities", "http_search_and_docs", "local_search",
    "predefined_search_services",
]  # fmt: skip
