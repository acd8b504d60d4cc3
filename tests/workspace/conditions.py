"""Conditions under which tests of the workspace are skipped."""

import pytest

from adapter.workspace.paths.directory_calls import DescriptorCalls, calls

needs_descriptors = pytest.mark.skipif(
    not isinstance(calls, DescriptorCalls), reason="about directory descriptors, which portable paths do not use"
)
