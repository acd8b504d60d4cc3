"""`adapter.integrations.pytest` under the name that tests import: ``from adapter.testing import assert_calls``."""

from adapter.integrations import pytest as _pytest
from adapter.integrations.pytest import assert_calls as assert_calls

__path__ = _pytest.__path__
