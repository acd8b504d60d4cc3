"""Find where an edit applies in a file: exact and fuzzy matches, and the reasons to reject one."""

__all__ = [
    "acceptance",
    "document_index",
    "fuzzy_match",
    "hunk_locator",
    "line_mapping",
    "line_similarity",
    "locator",
    "normalize",
    "strategies",
    "whole_file_locator",
]
