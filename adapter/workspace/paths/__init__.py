"""Resolve paths safely: never open a file outside the workspace root, even if another process swaps links."""

__all__ = [
    "git_detection",
    "gitignore",
    "globs",
    "name_rules",
    "openat2",
    "os_errors",
    "resolved_path",
    "resolver",
    "tree_ops",
    "walk",
]
