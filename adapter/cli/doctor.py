"""`adapter doctor`: checks this machine's setup."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from adapter.cli import options


def doctor(
    workspace: options.Workspace = Path(),
    sandbox: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Sandbox to check, as in `adapter run`. With require, fail if no sandbox works."
        ),
    ] = "auto",
    as_json: options.AsJson = False,
) -> None:
    """Check this machine's extras, sandbox and servers, and suggest fixes."""
    from adapter.cli.doctor_checks import run_checks
    from adapter.workspace.sandbox.sandbox import SandboxSettings

    findings = run_checks(str(workspace), SandboxSettings(sandbox))  # type: ignore[arg-type]  # SandboxSettings checks the level
    if as_json:
        rows = {finding.name: {"ok": finding.ok, "text": finding.text, **finding.data} for finding in findings}
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        print(f"{'+' if finding.ok else '-'} {finding.name:<{width}}  {finding.text}")
        if not finding.ok and finding.advice:
            print(f"  {'':<{width}}  > {finding.advice}")
