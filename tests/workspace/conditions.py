"""Conditions under which tests of the workspace are skipped."""

import ctypes
import sys

import pytest

from adapter.workspace.paths.descriptor_syscalls import DescriptorCalls, calls

IS_WINE = sys.platform == "win32" and hasattr(ctypes.WinDLL("ntdll"), "wine_get_version")
needs_descriptors = pytest.mark.skipif(
    not isinstance(calls, DescriptorCalls), reason="about directory descriptors, which portable paths do not use"
)
