"""For tests of programs that call tools: recorded answers in the place of a model, and what was called compared."""

from adapter.integrations.pytest.assertions import assert_calls as assert_calls

__all__ = ["plugin"]
