"""Locate edits in a file by exact or fuzzy matches, or reject them with a reason."""

__all__ = [
    "acceptance", "document_index", "fuzzy_match", "hunk_locator", "joint_placement", "line_mapping",
    "line_similarity", "locator", "normalize", "strategies", "whole_file_rewrite",
]  # fmt: skip
