"""Resolve paths safely: never open a file outside the workspace root, even if another process swaps links."""

__all__ = [
    "descriptor_syscalls", "git_data_detection", "gitignore", "globs", "open_flags", "openat2", "os_errors",
    "path_validation", "resolved_path", "resolver", "tree_ops", "walk", "windows_paths",
]  # fmt: skip
