"""Resolve paths safely: nothing outside the workspace root is opened, and links are never raced."""

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
