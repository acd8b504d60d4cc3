"""Run tool calls in a workspace. No other package changes files or starts processes for a model."""

from __future__ import annotations

from adapter.workspace.workspace import Workspace

__all__ = [
    "Workspace", "approval_flow", "approved_content", "pausable_deadline", "tool_results", "workspace",
    "workspace_context",
]  # fmt: skip
