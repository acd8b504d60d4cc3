"""For tests of programs that call tools: recorded answers in the place of a model, and what was called compared."""

from adapter.testing.calls import assert_calls as assert_calls
