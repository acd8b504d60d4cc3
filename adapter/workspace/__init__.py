"""Run tool calls in a workspace. This is the only code that touches files or processes."""

from __future__ import annotations

from adapter.workspace.workspace import Workspace

__all__ = ["Workspace", "approval_flow", "context", "tool_results", "workspace"]
