"""Set how many texts property tests draw: ``TEST_EFFORT=20 pytest --timeout 0 tests/parsing`` draws 20 times more.

What is drawn is drawn more often, hostile texts are as many times as long, and texts are cut at as many more places.
By default a newcomer's run of all tests stays short.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

EFFORT = max(1, int(os.environ.get("TEST_EFFORT", "1")))


def examples(count: int) -> settings:
    """Hypothesis with that many; the folders that a test is given serve all of its examples."""
    return settings(max_examples=count * EFFORT, suppress_health_check=[HealthCheck.function_scoped_fixture])
