"""Kinds of effects that operations have."""

from __future__ import annotations

from typing import Literal, TypeAlias

Effect: TypeAlias = Literal["read", "state", "write", "delete", "execute", "network", "skill"]
"""The kind of effect of an operation, which determines whether it needs approval.

``state`` changes only the agent's own state (todo list, memory, cursor). ``skill`` loads instructions.
"""
