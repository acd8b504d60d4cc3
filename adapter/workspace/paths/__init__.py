"""The gate: names and paths as the disk has them, and nothing outside the folder."""

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
