"""Run programs in a sandbox, and terminate them together with all their descendants."""

__all__ = [
    "background",
    "bounded_worker",
    "bubblewrap",
    "command_files",
    "deadline",
    "describe_confinement",
    "landlock",
    "processes",
    "sandbox",
    "seccomp",
    "shell",
    "supervisor",
    "user_tool_runner",
]
