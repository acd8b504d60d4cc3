"""Tests of `adapter.guardrails`."""
