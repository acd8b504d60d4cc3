"""Programs: run, confined, watched, and ended with all they started."""

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
