"""Run programs in a sandbox, and terminate them together with all their descendants."""

__all__ = [
    "background", "bounded_worker", "bubblewrap", "describe_confinement", "invoked_programs", "landlock",
    "platform_processes", "sandbox", "seccomp", "shell", "supervisor", "user_tool_runner",
]  # fmt: skip
