"""``adapter plugin`` names what an engine can load, and the package says where its entry points find us."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from adapter.cli.plugin import PLUGINS, plugin
from adapter.core.errors import UsageError

ROOT = Path(__file__).parents[3]
GROUPS = ("vllm.general_plugins", "sglang.srt.plugins")


def test_each_engines_file_is_there():
    """vLLM loads it under its own file name, which must not be that of vLLM."""
    assert all((ROOT / "adapter" / "engines" / name).is_file() for name in PLUGINS.values())
    assert Path(PLUGINS["vllm"]).stem != "vllm"


def test_another_engine_is_told_of_these():
    with pytest.raises(UsageError, match="there are: vllm, sglang"):
        plugin("llama.cpp")


def test_the_entry_points_lead_to_functions():
    """As `pyproject.toml` declares them."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    for group in GROUPS:
        module, _, name = declared[group]["toolcall_adapter"].partition(":")
        assert callable(getattr(import_module(module), name))
