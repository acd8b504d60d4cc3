"""`adapter demo`: lets the built-in model edit a sample workspace."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from adapter.cli.options import option
from adapter.core.errors import UsageError

DEMO_TASK = "In settings.ini change 'port = 8000' to 'port = 9000'"


def demo(
    keep: Annotated[Path | None, option("DIR", "Create the sample workspace in this folder and keep it.")] = None,
) -> None:
    """Watch the built-in model edit a file in a sample workspace."""
    import shutil
    import tempfile
    from contextlib import ExitStack

    from adapter.cli.agent_console import Console
    from adapter.cli.model_loading import ensure_builtin_model
    from adapter.cli.run_settings import RunSettings
    from adapter.cli.run_task import run_task
    from adapter.core import package_data
    from adapter.core.text.display_escaping import escape_for_display

    with ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="adapter-demo-")))
        if keep is not None and keep.exists():
            raise UsageError(f"{keep} already exists; choose a new folder")
        model = str(ensure_builtin_model(Console()))  # if it fails, there is no folder yet
        shutil.copytree(
            package_data.find_data_directory("fixtures") / "demo",
            folder,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("__pycache__"),  # pip compiles the sample on installation
        )
        file = folder / "settings.ini"
        before = file.read_text(encoding="utf-8")
        print(
            f"workspace: {', '.join(sorted(escape_for_display(path.name) for path in folder.iterdir()))}",
            file=sys.stderr,
        )
        print(f"task: {DEMO_TASK}", file=sys.stderr)
        state = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="adapter-demo-")))
        code = run_task(DEMO_TASK, RunSettings(folder, model=model, approve="yolo", constraint="required", state=state))
        after = file.read_text(encoding="utf-8")
        content = escape_for_display(after, keep="\n\t")
        print(f"settings.ini was{'' if after != before else ' not'} changed:\n{content}", end="")
        raise typer.Exit(code if after != before else 1)
