"""SECURITY.md: each row of its table of threats has tests, and `adapter doctor --prove` tries rows of that table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from adapter.cli.security_self_test import ATTACKS, prove
from adapter.workspace.sandbox.sandbox import SandboxSettings, find_unavailable_reason

ROOT = Path(__file__).parents[1]
SANDBOX = "tests/workspace/sandbox/test_sandbox.py"
HYGIENE = "tests/workspace/sandbox/test_hygiene.py"
ATTACKS_ON_CLAIMS = "tests/test_attacks.py::test_no_attack_on_a_claim_succeeds"
RESOLVER = "tests/workspace/paths/test_resolver.py"
WEB = "tests/workspace/capabilities/test_web_fetch.py"
TAMPERING = "tests/workspace/changes/test_tampering.py"
ESCAPING = "tests/prompting/test_escaping.py"
SCHEMAS = "tests/tools/test_bounded_validator.py"
DISPLAY = "tests/core/text/test_display_escaping.py"
REDACTION = "tests/core/text/test_redaction.py"

CLAIMS: dict[str, tuple[str, ...]] = {
    "A file tool opens something outside the workspace, by a path, a link or a race": (
        ATTACKS_ON_CLAIMS,
        f"{RESOLVER}::test_tools_cannot_reach_outside_root",
        "tests/test_campaigns.py::test_no_operation_can_be_swapped_out_of_the_workspace",
    ),
    "A change is interrupted by a crash, or unwanted": (
        "tests/workspace/changes/test_crashes.py::test_kill_before_system_call_is_repaired",
        "tests/workspace/changes/test_crashes.py::test_file_is_whole_before_any_repair",
        "tests/workspace/changes/test_history.py::test_undo_record_is_on_the_disk_before_the_file_changes",
        "tests/workspace/changes/test_history.py::test_every_kind_of_change_is_undone",
    ),
    "A command outlives its call, its timeout or the program": (
        f"{HYGIENE}::test_command_leaves_no_processes",
        f"{HYGIENE}::test_no_process_outlives_the_host",
    ),
    "A command reads credentials from the environment": (
        f"{HYGIENE}::test_only_allowed_variables_are_passed",
        f"{HYGIENE}::test_supervisor_environment_has_no_secrets",
        f"{REDACTION}::test_commands_get_no_credential",
    ),
    "A command reads your other files": (f"{SANDBOX}::test_command_cannot_read_outside_workspace",),
    "A command changes files elsewhere": (
        f"{SANDBOX}::test_command_cannot_write_outside_workspace",
        f"{SANDBOX}::test_old_landlock_cannot_empty_files_elsewhere",
    ),
    "A command changes git's own data, so that git runs something later": (
        f"{SANDBOX}::test_commands_cannot_change_git_data_under_any_name",
        f"{SANDBOX}::test_repository_cannot_be_replaced",
    ),
    "A file tool changes git's own data": (ATTACKS_ON_CLAIMS, f"{RESOLVER}::test_git_data_is_never_written"),
    "A file is written that some program runs later": (
        "tests/tools/operations/test_autorun_files.py::test_each_is_asked_about",
    ),
    "A command violates rules that deny paths": (f"{SANDBOX}::test_commands_cannot_access_denied_paths",),
    "A command uses the network": (f"{SANDBOX}::test_sockets_reach_only_allowed_families",),
    "A command reaches other processes: signals, debugging, D-Bus, X11, Wayland": (
        f"{SANDBOX}::test_command_cannot_signal_unrelated_processes",
        f"{SANDBOX}::test_command_cannot_signal_all_processes",
        f"{SANDBOX}::test_desktop_sockets_are_unreachable",
    ),
    "An allowed program name resolves to a file in the workspace": (
        ATTACKS_ON_CLAIMS,
        "tests/workspace/sandbox/test_user_tool_runner.py::test_directories_of_path_in_the_workspace_are_not_searched",
    ),
    "What you approved changes before it is done": (
        "tests/workspace/test_approval_state.py::test_call_is_refused_if_its_state_changed_while_the_user_was_asked",
        "tests/dialects/test_toolfiles.py::test_file_that_changes_after_the_question_is_not_used",
        "tests/workspace/capabilities/test_capabilities.py::test_skill_is_trusted_once_per_content",
        "tests/agent/test_async_callbacks.py::test_late_approval_of_the_workspaces_own_approver_is_ignored",
    ),
    "An approval request hides its content": (
        f"{DISPLAY}::test_every_hidden_character_is_spelled_out",
        f"{DISPLAY}::test_hostile_diffs_and_commands_hide_nothing",
        f"{DISPLAY}::test_the_end_of_a_question_is_seen",
    ),
    "Text that the model reads acts as a message or a call": (
        f"{ESCAPING}::test_every_marker_and_token_is_escaped",
        f"{ESCAPING}::test_added_tokens_are_escaped_and_restored",
        f"{ESCAPING}::test_added_control_tokens_are_distinctive",
        f"{ESCAPING}::test_escaped_generic_calls_are_not_parsed",
        f"{ESCAPING}::test_escaped_calls_of_each_format_are_not_parsed",
        f"{ESCAPING}::test_echoed_text_is_never_a_call",
    ),
    "A pattern, a document or an answer uses all memory or time": (
        "tests/workspace/test_workspace.py::test_running_out_of_memory_is_a_failed_call",
        "tests/test_hostile_files.py::test_damaged_files_are_read_or_give_one_error",
        "tests/test_hostile_files.py::test_jobs_end_within_their_limits",
        "tests/test_hostile_files.py::test_streamed_jobs_end_within_their_limits",
        "tests/test_hostile_files.py::test_tables_that_expand_to_gigabytes_give_one_error",
        f"{SCHEMAS}::test_patterns_are_searched_within_limits",
        f"{SCHEMAS}::test_references_are_followed_within_limits",
        "tests/tools/test_schema_refs.py::test_schema_that_contains_itself_twice_costs_little",
    ),
    "A page reaches your network": (
        f"{WEB}::test_is_public_rejects_private_addresses",
        f"{WEB}::test_host_with_any_private_address_is_refused",
        f"{WEB}::test_connection_uses_the_checked_address",
        f"{WEB}::test_every_redirect_is_checked",
        f"{WEB}::test_host_is_resolved_and_checked_after_redirect",
        f"{SCHEMAS}::test_no_reference_is_fetched",
    ),
    "A transcript from someone else": (
        ATTACKS_ON_CLAIMS,
        "tests/recording/test_replay.py::test_a_command_without_a_recorded_result_is_not_run",
        "tests/recording/test_replay.py::test_commands_run_again_in_a_sandbox_or_not_at_all",
    ),
    "A client of `adapter serve` sees or changes another client's conversation": (
        "tests/server/test_serve.py::test_no_client_gets_text_that_the_model_wrote_for_another",
        "tests/protocols/test_wire.py::test_verbatim_cache_is_bounded",
    ),
    "An MCP server lies about its tools, or changes them": (
        "tests/integrations/mcp/test_mcp.py::test_read_only_hint_of_an_untrusted_server_needs_approval",
        "tests/integrations/mcp/test_mcp.py::test_changed_definition_is_shown_and_needs_approval",
    ),
    "Someone with write access to your state folder manipulates the records of changes": (
        f"{TAMPERING}::test_tampered_records_are_harmless",
        f"{TAMPERING}::test_undo_never_writes_git_data",
        f"{TAMPERING}::test_recovery_never_renames_into_git_data",
        f"{TAMPERING}::test_forged_batch_does_not_restore_files_that_run_later",
        f"{TAMPERING}::test_undo_asks_before_it_writes_files_that_run_later",
    ),
    "A key leaks through a recording, a log or an error": (
        f"{REDACTION}::test_redact_replaces_text_in_the_form_of_a_credential",
        f"{REDACTION}::test_values_of_variables_are_redacted_in_every_spelling",
        f"{REDACTION}::test_field_with_a_secret_name_is_redacted",
        f"{REDACTION}::test_errors_never_carry_a_key",
    ),
}
"""Tests by the row of SECURITY.md whose claim they check."""


def rows() -> list[str]:
    table = (ROOT / "SECURITY.md").read_text(encoding="utf-8").partition("| threat |")[2].partition("\n\n")[0]
    return [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines()[2:]]


def test_each_claim_has_a_test():
    assert rows() == list(CLAIMS)
    for tests in CLAIMS.values():
        for test in tests:
            file, _, name = test.partition("::")
            assert re.search(rf"^def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), test


def test_proofs_are_rows_of_the_page():
    assert list(ATTACKS) == [row for row in rows() if row in ATTACKS]


UNCONFINED = {
    "A command reads your other files",
    "A command changes files elsewhere",
    "A command changes git's own data, so that git runs something later",
    "A command uses the network",
    "A command reaches other processes: signals, debugging, D-Bus, X11, Wayland",
}
"""Rows that promise nothing without a sandbox."""


def test_proofs_without_a_sandbox_name_failed_claims():
    assert {proof.row for proof in prove(SandboxSettings("none")) if proof.effect} == UNCONFINED


@pytest.mark.parametrize("level", ["bwrap", "landlock"])
def test_proofs_hold_in_a_sandbox(level):
    if (gap := find_unavailable_reason(level)) is not None:
        pytest.skip(f"no {level} here: {gap.why}")
    lost = {proof.row for proof in prove(SandboxSettings(level)) if proof.effect}
    allowed = {"A command changes git's own data, so that git runs something later"} if level == "landlock" else set()
    assert lost - {"A command reaches other processes: signals, debugging, D-Bus, X11, Wayland"} == allowed
