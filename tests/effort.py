"""Set the number of texts in property tests: ``TEST_EFFORT=20 pytest --timeout 0 tests/parsing`` draws 20 times more.

Hostile texts also become longer, and texts are split at more places. The default keeps a run of all tests short.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

EFFORT = max(1, int(os.environ.get("TEST_EFFORT", "1")))


def examples(count: int) -> settings:
    """Let Hypothesis draw this many examples, which share the test's temporary folders."""
    return settings(max_examples=count * EFFORT, suppress_health_check=[HealthCheck.function_scoped_fixture])
