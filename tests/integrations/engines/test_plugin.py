"""``adapter plugin`` prints the file for an engine, and the package declares entry points."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from adapter.cli.plugin import PLUGINS, plugin
from adapter.core.errors import UsageError

ROOT = Path(__file__).parents[3]
GROUPS = ("vllm.general_plugins", "sglang.srt.plugins")


def test_plugin_file_of_each_engine_exists():
    """vLLM loads it under its own file name, which must not be that of vLLM."""
    assert all((ROOT / "adapter" / "integrations" / "engines" / name).is_file() for name in PLUGINS.values())
    assert Path(PLUGINS["vllm"]).stem != "vllm"


def test_unknown_engine_error_lists_known_engines():
    with pytest.raises(UsageError, match="expected vllm, sglang"):
        plugin("llama.cpp")


def test_entry_points_are_callable():
    """As `pyproject.toml` declares them."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    for group in GROUPS:
        module, _, name = declared[group]["toolcall_adapter"].partition(":")
        assert callable(getattr(import_module(module), name))
