"""Resolve paths safely: never open a file outside the workspace root, even if another process swaps links."""

__all__ = [
    "directory_calls", "git_data", "gitignore", "globs", "name_rules", "open_flags", "openat2", "os_errors",
    "resolved_path", "resolver", "tree_ops", "walk",
]  # fmt: skip
