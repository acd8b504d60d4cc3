"""`adapter doctor`: checks this machine's setup."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from adapter.cli import options
from adapter.cli.escaped_output import print_escaped
from adapter.cli.options import flag, option
from adapter.core.text.display_escaping import dump_for_display

if TYPE_CHECKING:
    from adapter.workspace.sandbox.sandbox import SandboxSettings


def doctor(
    workspace: Annotated[
        Path, option("DIR", "Check the sandbox for commands in this folder.", "--workspace", "-w")
    ] = Path(),
    sandbox: Annotated[
        str, option("NAME", "Check this sandbox, named as in `adapter run`. With require, fail if no sandbox works.")
    ] = "auto",
    as_json: options.AsJson = False,
    prove: Annotated[
        bool,
        flag("Try attacks in a temporary folder, and show which SECURITY.md promises hold on this machine.", "--prove"),
    ] = False,
) -> None:
    """Check this machine's extras, sandbox and servers."""
    from adapter.cli.doctor_checks import run_checks
    from adapter.workspace.sandbox.sandbox import SandboxSettings

    if prove:
        _print_proofs(SandboxSettings(sandbox), as_json=as_json)  # type: ignore[arg-type]
        return
    findings = run_checks(str(workspace), SandboxSettings(sandbox))  # type: ignore[arg-type]  # SandboxSettings checks the level
    if as_json:
        rows = {finding.name: {"ok": finding.ok, "text": finding.text, **finding.data} for finding in findings}
        print(dump_for_display(rows, indent=2))
        return
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        print_escaped(f"{'+' if finding.ok else '-'} {finding.name:<{width}}  {finding.text}")
        if not finding.ok and finding.advice:
            print_escaped(f"  {'':<{width}}  > {finding.advice}")


def _print_proofs(sandbox: SandboxSettings, *, as_json: bool) -> None:
    from adapter.cli.security_self_test import prove

    proofs = []
    for proof in prove(sandbox):
        proofs.append(proof)
        if not as_json:
            print_escaped(f"{'-' if proof.effect else '+'} {proof.row}")
            if proof.effect:
                print_escaped(f"  > does not hold here: {proof.effect}")
    if as_json:
        rows = {proof.row: {"ok": not proof.effect, "effect": proof.effect} for proof in proofs}
        print(dump_for_display(rows, indent=2))
