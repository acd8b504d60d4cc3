"""Run programs in a sandbox, and terminate them together with all their descendants."""

__all__ = [
    "background_commands", "bounded_worker", "bubblewrap", "invoked_programs", "landlock", "platform_processes",
    "sandbox", "sandbox_notes", "seccomp", "shell", "supervisor", "user_tool_runner",
]  # fmt: skip
