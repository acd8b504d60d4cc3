"""A shorter import path for the pytest helpers in `adapter.integrations.pytest`."""

from adapter.integrations import pytest as _pytest
from adapter.integrations.pytest import assert_calls as assert_calls

__path__ = _pytest.__path__
