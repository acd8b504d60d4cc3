"""Run programs in a sandbox, and terminate them together with all their descendants."""

__all__ = [
    "background",
    "bounded_worker",
    "bubblewrap",
    "command_files",
    "deadline",
    "describe_confinement",
    "landlock",
    "program_runner",
    "sandbox",
    "seccomp",
    "shell",
    "supervisor",
    "system_support",
]
