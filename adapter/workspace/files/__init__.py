"""Read, write, patch, move, search and outline files."""

__all__ = [
    "edit_files", "file_patching", "grep", "listing", "media", "move_copy_delete", "read_file", "symbol_search",
]  # fmt: skip
