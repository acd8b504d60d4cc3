"""Tests of `adapter.conversation.guardrails`."""
