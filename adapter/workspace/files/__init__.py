"""Read, write, patch, move, search and outline files."""

__all__ = [
    "file_changes", "file_info", "file_patching", "grep", "listing", "media", "move_copy_delete", "read_file",
    "symbol_search",
]  # fmt: skip
