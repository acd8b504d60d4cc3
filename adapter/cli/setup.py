"""`adapter setup`: downloads the built-in model."""

from __future__ import annotations


def setup() -> None:
    """Download the built-in model, so that later runs work offline."""
    from adapter.cli.agent_console import Console
    from adapter.cli.model_loading import ensure_builtin_model

    print(ensure_builtin_model(Console()))
