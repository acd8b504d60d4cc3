"""Rules, modes and remembered answers: one place decides, a denial takes precedence, and nothing is generalized."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.errors import UsageError
from adapter.tools.operations import CallFunction, Delete, ReadText, RunCommand, WriteText
from adapter.tools.operations.permissions import (
    MODES,
    ApprovalDecision,
    ApprovalRequest,
    PermissionPolicy,
    PermissionRule,
)
from adapter.tools.operations.shell_analysis import (
    is_dynamic,
    iter_possible_commands,
    iter_possible_programs,
    parse_simple_command,
)
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host_capabilities import Host
from tests.approvals import record_requests
from tests.hosted_dialect import HOSTED
from tests.processor_time import processor_limit


def command(line: str, cwd: str = ".") -> ApprovalRequest:
    return ApprovalRequest("Bash", RunCommand(line, cwd), "execute", line, command=line, cwd=cwd)


def write(path: str) -> ApprovalRequest:
    return ApprovalRequest("Write", WriteText(path, ""), "write", path, paths=(path,))


def read(path: str) -> ApprovalRequest:
    return ApprovalRequest("Read", ReadText(path), "read", path, paths=(path,))


def verdict(approval: ApprovalRequest, *rules: str, mode: str = "ask") -> str:
    return PermissionPolicy(mode, tuple(map(PermissionRule.from_text, rules))).decide(approval)[0]


# --------------------------------------------------------------------------- modes


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [
        ("ask", ["allow", "ask", "ask", "ask"]),
        ("auto-edit", ["allow", "allow", "ask", "ask"]),
        ("yolo", ["allow", "allow", "allow", "allow"]),
        ("plan", ["allow", "deny", "deny", "deny"]),
    ],
)
def test_modes_decide_by_effect(mode, wanted):
    """Reads, writes, deletions and commands."""
    delete = ApprovalRequest("Delete", Delete("a"), "delete", "", paths=("a",))
    assert [verdict(one, mode=mode) for one in (read("a"), write("a"), delete, command("ls"))] == wanted


def test_no_approval_where_the_document_requires_none():
    """C004: the document requires no approval for the other tools. A denial still applies."""
    fetch = ApprovalRequest("fetch", ReadText("x"), "network", "", subject="example.com")
    assert PermissionPolicy("ask").decide(fetch)[0] == "ask"
    assert PermissionPolicy("ask", preapproved=frozenset({"network"})).decide(fetch)[0] == "allow"
    assert PermissionPolicy("plan", preapproved=frozenset({"write"})).decide(write("a"))[0] == "deny"


def test_every_mode_covers_every_effect():
    assert all(set(by_effect) <= {"write", "delete", "execute", "network", "skill"} for by_effect in MODES.values())


# ------------------------------------------------------------------------ commands


@pytest.mark.parametrize(
    ("rule", "line", "wanted"),
    [
        ("git status", "git status", "allow"),
        ("git status", "git  status", "allow"),
        ("git status", "git status src", "allow"),
        ("git status", "git 'status'", "allow"),
        ("git status", "git status --output=x", "ask"),
        ("git status *", "git status -s", "allow"),
        ("git status", "git", "ask"),
        ("git status", "git push", "ask"),
        ("git status", "git statusx", "ask"),
        ("git", "gitx", "ask"),
        ("git", "./git", "ask"),
        ("git", "/tmp/git", "ask"),
        ("git status", "git status && rm -rf x", "ask"),
        ("git status", "git status; rm x", "ask"),
        ("git status", "git status | sh", "ask"),
        ("git status", "git status & rm x", "ask"),
        ("git status", "git status\nrm x", "ask"),
        ("git status", "git status $(rm x)", "ask"),
        ("git status", "git status `rm x`", "ask"),
        ("git status", 'git status "$(rm x)"', "ask"),
        ("git status", "git status > out", "ask"),
        ("git status", "git status <(rm x)", "ask"),
        ("git status", "git status *", "ask"),
        ("git status", 'git "sta\'tus"', "ask"),
        ("git status", "git 'sta\"tus'", "ask"),
        ("git status", "git sta'tu's", "allow"),
        ("git status", "git status ~", "ask"),
        ("git status", "git status {a,b}", "ask"),
        ("git status", "PAGER=x git status", "ask"),
        ("git status", "git\\ status", "ask"),
        ("git status", "git status #x", "ask"),
        ("git status", "git status \u00a0x", "ask"),
        ("git status *", "git status || rm x", "ask"),
        ("*", "anything at all", "allow"),
        ("*", "a && b", "ask"),
    ],
)
def test_an_allowed_command_is_that_command_and_nothing_behind_it(rule, line, wanted):
    """By parsed words. Anything that a shell could expand, chain or redirect needs approval."""
    assert verdict(command(line), f"allow Bash({rule})") == wanted


@pytest.mark.parametrize(
    "line",
    [
        "rm x",
        "cd a && rm x",
        "ls; rm x",
        "ls | xargs rm",
        "sudo -n rm x",
        "FOO=1 rm x",
        "/bin/rm x",
        "r'm' x",
        "\\rm x",
        "echo $(rm x)",
        "echo `rm x`",
        "sh -c 'rm x'",
        "(rm x)",
        "{ rm x; }",
        "ls\nrm x",
        "if true; then rm x; fi",
        "timeout 5 rm x",
        "cat <(rm x)",
        "find . -exec rm {} +",
        "find . -execdir /bin/rm {} ;",
    ],
)
@pytest.mark.parametrize("mode", ["ask", "yolo"])
def test_a_denied_command_is_found_wherever_it_may_run(line, mode):
    """A denial takes precedence over allow rules and every mode."""
    assert verdict(command(line), "allow Bash", "deny Bash(rm)", mode=mode) == "deny"


def test_a_denied_subcommand_is_found_behind_options():
    """`git -C d push` is `git push`."""
    assert verdict(command("git -C d push"), "deny Bash(git push)", mode="yolo") == "deny"
    assert verdict(command("git pull"), "deny Bash(git push)", mode="yolo") == "allow"


@pytest.mark.parametrize("line", ["$x y", "{rm,x}", "eval $x", "a* b", "${x}", ". ./x"])
def test_command_with_expansion_needs_the_user_if_commands_are_denied(line):
    """The expansion could be the denied command, so yolo and a rule that allows everything are not enough."""
    assert verdict(command(line), "deny Bash(rm)", mode="yolo") == "ask"
    assert verdict(command(line), "deny Bash(rm)", "allow Bash", mode="yolo") == "ask"
    assert verdict(command(line), mode="yolo") == "allow"


def test_more_parts_than_anybody_counts_are_all_looked_at():
    """A limit on sub-commands once skipped deny rules: limits must fail closed."""
    assert verdict(command(";".join(["ls"] * 500 + ["rm x"])), "deny Bash(rm)", mode="yolo") == "deny"


def test_a_command_may_not_hide_behind_many_words():
    """Beyond two hundred words, only the user can allow it."""
    assert verdict(command("rm " + "x " * 5_000), "deny Bash(rm)", mode="yolo") == "deny"
    assert verdict(command("sudo " * 100 + "rm x"), "deny Bash(rm)", mode="yolo") == "deny"
    assert verdict(command("sudo " * 5_000 + "rm x"), "deny Bash(rm)", mode="yolo") == "ask"


@given(st.text(alphabet="git status&;|$()`<>\"'\\\n*=-", max_size=40))
def test_simple_command_rejects_shell_syntax(line):
    """If any line has words, it has no operator outside quotes and no expansion."""
    words = parse_simple_command(line)
    if words is not None:
        assert not set("$`\\\n") & set(re.sub("'[^']*'", "", line))
        assert "=" not in words[0]


# --------------------------------------------------------------------------- paths


def test_path_rules_read_as_in_gitignore():
    """For one tool or all."""
    assert verdict(write("src/a.py"), "allow Write(src/**)") == "allow"
    assert verdict(write("docs/a.md"), "allow Write(src/**)") == "ask"
    assert verdict(write("a/b/key.pem"), "deny *(*.pem)", mode="yolo") == "deny"
    assert verdict(read("secrets/x"), "deny Read(secrets/)") == "deny"
    assert verdict(write("secrets/x"), "deny Read(secrets/)", mode="yolo") == "allow"


def test_allow_must_cover_all_paths_deny_any():
    """A move out of an allowed folder is not allowed."""
    move = ApprovalRequest("Move", WriteText("", ""), "write", "", paths=("src/a", "docs/a"))
    assert verdict(move, "allow Move(src/**)") == "ask"
    assert verdict(move, "allow Move(src/**)", "allow Move(docs/**)") == "ask"
    assert verdict(move, "deny Move(docs/**)", mode="yolo") == "deny"


def test_a_reader_that_is_allowed_some_paths_is_denied_the_others():
    """As ProxyAI's permissions for Read. A rule without an effect would be misleading."""
    assert verdict(read("src/a"), "allow Read(src/**)") == "allow"
    assert verdict(read("b"), "allow Read(src/**)") == "deny"


def test_order_is_deny_grant_ask_allow_mode():
    """Whatever the order of the rules."""
    rules = ("allow Bash(git push)", "ask Bash(git)")
    assert verdict(command("git push"), *rules, mode="yolo") == "ask"
    assert verdict(command("git push"), *rules, "deny Bash(git push)", mode="yolo") == "deny"
    policy = PermissionPolicy("ask", tuple(map(PermissionRule.from_text, rules)))
    policy.granted.add(command("git push").key)
    assert policy.decide(command("git push"))[0] == "allow"
    assert policy.decide(command("git push origin"))[0] == "ask"
    assert policy.decide(command("git push", "sub"))[0] == "ask"


@pytest.mark.parametrize("text", ["allow", "allow Bash(git", "permit Bash", "deny Bash()", "deny Read(!a)", "deny (x)"])
def test_a_rule_that_could_not_match_is_refused(text):
    """It would look like one that protects something."""
    with pytest.raises(UsageError, match="rule"):
        PermissionRule.from_text(text)


@pytest.mark.parametrize("text", ["allow Bash", "deny Read(secrets/**)", "ask *(*.pem)"])
def test_rules_write_and_read_back(text):
    """For transcripts and settings."""
    assert str(PermissionRule.from_text(text)) == text


# --------------------------------------------------------------------- in a workspace


@pytest.fixture
def root(tmp_path):
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "key").write_text("hunter2\n")
    (tmp_path / "link").symlink_to("secrets/key")
    (tmp_path / "a.txt").write_text("hunter1\n")
    return tmp_path


def rules(*texts):
    return [PermissionRule.from_text(text) for text in texts]


def test_rules_apply_to_the_target_of_a_link(root):
    """CVE-2026-25724: a deny rule was bypassed through a link."""
    with Workspace(root, approve="yolo", rules=rules("deny read_file(secrets/**)", "deny write_file(secrets/)")) as ws:
        for path in ("secrets/key", "link", "./secrets/../secrets/key", str(root / "secrets" / "key")):
            assert "forbids it" in ws.run("read_file", {"path": path}).content
        assert "forbids it" in ws.run("write_file", {"path": "link", "content": "x"}).content
        assert "forbids it" in ws.run("write_file", {"path": "secrets/new", "content": "x"}).content
        assert ws.run("read_file", {"path": "a.txt"}).ok
    assert (root / "secrets" / "key").read_text() == "hunter2\n"


def test_searches_omit_denied_paths(root):
    """A listing must not reveal what cannot be read."""
    denied = rules("deny grep_search(secrets/)", "deny find_files(secrets/)", "deny list_directory(secrets/)")
    with Workspace(root, rules=denied) as ws:
        assert "hunter2" not in ws.run("grep_search", {"pattern": "hunter"}).content
        assert "hunter1" in ws.run("grep_search", {"pattern": "hunter"}).content
        assert "secrets" not in ws.run("find_files", {"pattern": "e"}).content
        assert "secrets" not in ws.run("list_directory", {}).content


@pytest.mark.parametrize(
    ("rule", "is_hidden"),
    [
        ("deny Read(secret/**)", True),
        ("deny *(secret/**)", True),
        ("deny Write(secret/**)", False),
        ("allow Read(secret/**)", False),
        ("deny Read", False),
    ],
)
def test_only_a_denial_of_the_tool_hides_a_path(rule, is_hidden):
    """From its listings, and from commands in a sandbox."""
    policy = PermissionPolicy("ask", (PermissionRule.from_text(rule),))
    assert policy.is_hidden("Read", "secret/key") is is_hidden
    is_denied = policy.build_denied_path_test(frozenset({"Read"}))
    assert bool(is_denied and is_denied("secret/key")) is is_hidden
    assert not (is_denied and is_denied("a.py"))


@pytest.mark.parametrize(("effect", "is_asked_once"), [("read", True), ("network", True), ("execute", False)])
def test_one_approval_covers_an_external_tool_that_declares_no_execution(effect, is_asked_once):
    """Each call of a tool that may do anything needs approval, even if a notice came with the first."""
    calls = [CallFunction("t", print, {"n": n}, effect, notice="its definition has changed") for n in (1, 2)]
    first, second = (ApprovalRequest("t", call, effect, str(call.arguments)) for call in calls)
    assert first.caution == "its definition has changed"
    assert (first.key == second.key) is is_asked_once


def test_a_rule_for_a_tool_that_is_not_there_is_refused(root):
    """A rule may use a tool's alias."""
    with pytest.raises(UsageError, match="names an unknown tool"):
        Workspace(root, rules=rules("deny Bsah(rm)"))
    with Workspace(root, approve="yolo", rules=rules("deny bash(rm)")) as ws:
        assert "'deny run_command(rm)' forbids it" in ws.run("run_command", {"command": "rm a.txt", "cwd": "."}).content
    assert (root / "a.txt").exists()


def test_remembered_approval_covers_only_the_identical_call(root):
    """Not for the whole tool, a longer command, another folder or the next session."""
    asked = []

    def ask(approval):
        asked.append(approval.summary)
        return ApprovalDecision(True, remember="touch" not in approval.summary)

    with Workspace(root, approve=ask) as ws:
        for line in ("true", "true", "true x", "touch b", "touch b"):
            ws.run("run_command", {"command": line, "cwd": "."})
        ws.run("run_command", {"command": "true", "cwd": "secrets"})
        for path in ("a.txt", "./a.txt", "b.txt"):
            ws.run("write_file", {"path": path, "content": "x"})
    assert asked == [
        "run in .: true",
        "run in .: true x",
        "run in .: touch b",
        "run in .: touch b",
        "run in secrets: true",
        "overwrite a.txt",
        "create b.txt",
    ]
    with Workspace(root, approve=ask) as ws:
        ws.run("run_command", {"command": "true", "cwd": "."})
    assert len(asked) == 8


def test_a_remembered_refusal_is_no_approval(root):
    with Workspace(root, approve=lambda _: ApprovalDecision(False, remember=True)) as ws:
        for _ in range(2):
            assert ws.run("write_file", {"path": "a.txt", "content": "x"}).denied
    assert (root / "a.txt").read_text() != "x"


def test_a_change_is_refused_without_an_approver(root):
    with Workspace(root) as ws:
        refused = ws.run("write_file", {"path": "a.txt", "content": "x"})
    assert refused.denied
    assert "needs the user's approval (overwrite a.txt), but no approver is available" in refused.content


def test_a_refusal_passes_its_reason_on(root):
    """The model gets the user's reason."""
    with Workspace(root, approve=lambda _: ApprovalDecision(False, reason="use b.txt")) as ws:
        refused = ws.run("delete_file", {"path": "a.txt"})
        assert "did not approve (use b.txt)" in refused.content
        assert "follow the user's reason" in refused.content
        assert refused.denied
        assert not ws.run("delete_file", {"path": "missing"}).denied


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("write_file", {"path": "a.txt", "content": "one\ntwo\n"}),
        ("apply_edit", {"path": "a.txt", "old_text": "one", "new_text": "two"}),
        ("apply_patch", {"patch": "*** Begin Patch\n*** Add File: a.txt\n+one\n*** End Patch"}),
    ],
)
@pytest.mark.parametrize(
    ("before", "text"), [(b"one\r\n", "drei\r\n"), ("\ufeffone\n".encode("utf-16"), "\ufeffvier\n")]
)
def test_a_decision_may_put_another_text_in_the_place(tmp_path, call, arguments, before, text):
    """It is written in the encoding of the change, can be undone, and the model is informed."""
    if call != "apply_patch":
        (tmp_path / "a.txt").write_bytes(before)
    seen, edit = record_requests("draft", answer=ApprovalDecision(True, content=text))
    with Workspace(tmp_path, ask=edit) as ws:
        result = ws.run(call, arguments)
        assert result.ok, result.content
        (draft,) = seen
        encoding = "utf-16" if call != "apply_patch" and before[:2] == b"\xff\xfe" else "utf-8"
        after = (tmp_path / "a.txt").read_bytes()
        assert after.decode(encoding).removeprefix("\ufeff") == text.removeprefix("\ufeff")
        assert draft.path == "a.txt"
        assert draft.after != text
        assert "The user changed this before it was applied. What was done:\n--- a/a.txt" in result.content
        assert f"+{text.strip()[-4:]}" in result.diff.replace("\ufeff", "")
        ws.undo()
    assert (tmp_path / "a.txt").exists() is (call != "apply_patch")


def test_decision_content_is_rejected_unless_one_text_changes(root):
    """A command, a deletion and several files have no text to replace, so a text is a bug of the program."""
    seen, edit = record_requests("draft", answer=ApprovalDecision(True, content="x"))
    patch = "*** Begin Patch\n*** Add File: n\n+1\n*** Add File: m\n+1\n*** End Patch"
    with Workspace(root, approve=edit) as ws:
        for name, arguments in [("delete_file", {"path": "a.txt"}), ("apply_patch", {"patch": patch})]:
            with pytest.raises(UsageError, match="only a change to one text file can be edited"):
                ws.run(name, arguments)
    assert seen == [None, None, None][: len(seen)]
    assert (root / "a.txt").exists()


def test_plan_mode_refuses_changes_without_asking(root):
    """proto's mode: read, but do not change."""
    with Workspace(root, approve="plan", ask=lambda _: pytest.fail("asked")) as ws:
        assert "approval mode 'plan' forbids it" in ws.run("write_file", {"path": "n", "content": ""}).content
        assert ws.run("read_file", {"path": "a.txt"}).ok


def test_a_denied_file_is_not_quoted_by_a_failed_edit(root):
    """The refusal comes before the plan, whose errors show the nearest lines."""
    rules_ = rules("deny edit_file(secrets/)", "deny open_file(secrets/)", "deny get_selection(secrets/)")
    with Workspace(root, approve="yolo", rules=rules_) as ws:
        edit = {"path": "link", "old_content": "hunter3 x", "new_content": "x"}
        for name, arguments in [("edit_file", edit), ("open_file", {"path": "link"})]:
            answer = ws.run(name, arguments).content
            assert "forbids it" in answer
            assert "hunter2" not in answer


def test_a_function_is_remembered_with_its_arguments(root):
    """Other arguments are another call."""
    asked, approve = record_requests("summary", answer=ApprovalDecision(True, remember=True))

    def ping(host: str) -> str:
        """Ping."""
        return host

    with Workspace(root, approve=approve, tools=[ping]) as ws:
        for host in ("a", "a", "b"):
            assert ws.run("ping", {"host": host}).ok
    assert asked == ["call ping(host='a')", "call ping(host='b')"]


def test_a_rule_for_a_function_has_no_pattern(root):
    """It would have nothing to match."""

    def ping(host: str) -> str:
        """Ping."""
        return host

    with pytest.raises(UsageError, match="cannot have a pattern"):
        Workspace(root, tools=[ping], rules=rules("deny ping(a)"))
    with Workspace(root, approve="yolo", tools=[ping], rules=rules("deny ping")) as ws:
        assert "forbids it" in ws.run("ping", {"host": "a"}).content


def test_path_rules_do_not_apply_to_memory(root, tmp_path_factory):
    """Rules about files do not apply to notes."""
    host = Host(state=str(tmp_path_factory.mktemp("state")))
    with Workspace(root, HOSTED, rules=rules("deny *(secrets/)"), host=host) as ws:
        assert ws.run("memory", {"command": "write", "path": "secrets/a", "content": "x"}).ok
        assert ws.run("memory", {"command": "view", "path": "secrets/a"}).ok


def test_a_rule_or_an_approver_that_is_none_is_refused_at_once(root):
    """At once, not when it is first used."""
    with pytest.raises(UsageError, match="unknown rule verdict 'dney'; expected allow, ask or deny"):
        PermissionRule("dney", "read_file")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="'deny read_file' is not a PermissionRule"):
        Workspace(root, rules=["deny read_file"])  # type: ignore[list-item]
    with pytest.raises(UsageError, match=r"unknown approval mode 5; expected ask, auto-edit, yolo, plan"):
        Workspace(root, approve=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["Secrets/key", "SECRETS/KEY", "secrets/key"])
def test_rules_that_restrict_ignore_case(path):
    """On macOS and Windows all of these are one file. A rule that allows covers only its own spelling."""
    assert verdict(read(path), "deny Read(secrets/**)") == "deny"
    assert verdict(read(path), "deny Read(SECRETS/)") == "deny"
    assert verdict(write(path), "ask Write(secrets/**)", mode="auto-edit") == "ask"
    assert (verdict(write(path), "allow Write(secrets/**)") == "allow") is (path == "secrets/key")


@pytest.mark.parametrize("unit", ["{", "{a", "{,", "${", "$(", "`", "'", '"', "\\", "<<E\n", "sh -c '", "(", ";;"])
def test_long_commands_are_checked_in_linear_time(unit):
    """Sixty thousand ``{`` took over twenty seconds with a rule that denies a command."""
    line = unit * (200_000 // len(unit))
    with processor_limit(5):
        verdict(command(line), "deny Bash(rm)")
        is_dynamic(line)


@pytest.mark.parametrize("line", ["{rm,-rf,x}", "x{{rm,y", "{a{rm,b}}", "{1..3}", "echo {a}{rm,b}"])
def test_brace_expansion_is_dynamic(line):
    assert is_dynamic(line)


@pytest.mark.parametrize("line", ["find src -exec rm {} +", "awk '{print}' a,b", "echo {a}.txt", "x{a b,c}"])
def test_other_braces_are_not_dynamic(line):
    assert not is_dynamic(line)


@pytest.fixture
def windows(monkeypatch):
    """Read lines as cmd.exe does."""
    monkeypatch.setattr("adapter.tools.operations.shell_analysis.IS_WINDOWS", True)


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("git status", ("git", "status")),
        ('git commit -m "fix it"', ("git", "commit", "-m", "fix it")),
        ("src\\build.exe a:b", ("src/build.exe", "a:b")),
    ],
)
def test_plain_words_are_a_command_of_cmd(line, words):
    assert parse_simple_command(line) == words
    assert not is_dynamic(line)


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize(
    "line",
    [
        *("git status & calc", "git status '&calc'", "git %x%", "g^it", "git status | more", "git > x", "(git)", "!x!"),
        *("git status\ncalc", "git\tlog", "git,log", "git=log", "git;log", 'git "%x%"', 'git "a\\" b" -x "', 'git "a'),
        *("git 'a b'", "@echo off&x", "for %i in (a) do b", "git ü"),
    ],
)
def test_any_other_line_of_cmd_is_neither_allowed_nor_compared(line):
    """The user is asked if any rule denies commands."""
    assert parse_simple_command(line) is None
    assert is_dynamic(line)


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize(
    "line",
    [
        *("del a", "DEL a", "del.exe a", "C:\\x\\Del.EXE a", "cmd /c del a", "start del a", 'cmd /c "del a"', "@del a"),
        *("call del a", "if exist a del a", "forfiles /c del a", "cmd /cdel a", "del/q a", "del.\\\\a", "@del a"),
    ],
)
def test_denied_command_of_cmd_is_found_at_any_position(line):
    """If it is not found, the line needs approval."""
    assert any(words[0] == "del" for words in iter_possible_commands(line)) or is_dynamic(line)
    assert verdict(command(f"{line} /Q"), "deny Bash(Del.exe /q)", mode="yolo") in ("ask", "deny")


@pytest.mark.usefixtures("windows")
def test_files_of_a_line_of_cmd_are_found():
    """Paths may have backslashes, and programs may have extensions."""
    assert {"sub/tool.bat", "x.py"} <= set(iter_possible_programs("call sub\\tool.bat x.py"))
    assert "package.json" in iter_possible_programs("NPM.CMD test")
