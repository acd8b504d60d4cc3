"""What tools do. The only code that touches disk or processes."""

from __future__ import annotations

from adapter.workspace.workspace import Workspace

__all__ = ["Workspace", "approval_flow", "context", "tool_results", "workspace"]
