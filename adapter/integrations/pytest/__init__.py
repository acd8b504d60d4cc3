"""Replay recorded model answers in pytest, and compare tool calls with expected calls."""

from adapter.integrations.pytest.assertions import assert_calls as assert_calls

__all__ = ["plugin"]
