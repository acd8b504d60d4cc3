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
    "program_runner",
    "sandbox",
    "seccomp",
    "shell",
    "supervisor",
]
