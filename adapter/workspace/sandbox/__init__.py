"""Run programs in a sandbox, and terminate them together with all their descendants."""

__all__ = [
    "background",
    "bubblewrap",
    "confinement_notes",
    "deadline",
    "landlock",
    "program_runner",
    "sandbox",
    "seccomp",
    "shell",
    "supervisor",
]
