"""What a session has beyond files and processes: a person, an editor, knowledge, memory, and calls within calls."""

__all__ = ["host", "http_providers", "local_search", "planner", "search_services"]
