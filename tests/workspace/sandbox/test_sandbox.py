"""The sandbox from outside: hostile commands are confined, and ordinary work succeeds."""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
from contextlib import ExitStack
from pathlib import Path

import pytest

from adapter.core.errors import ToolError, UsageError
from adapter.tools.operations import RunCommand, RunProgram, StartCommand
from adapter.tools.operations.permissions import NO_SANDBOX, PermissionRule
from adapter.workspace import Workspace
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.sandbox import landlock, protected_paths, sandbox
from adapter.workspace.sandbox.background_commands import BackgroundCommands
from adapter.workspace.sandbox.bubblewrap import CHANGED, find_identity
from adapter.workspace.sandbox.readable_paths import (
    find_git_directory_elsewhere,
    list_tool_directories,
    read_git_identity,
)
from adapter.workspace.sandbox.sandbox import ActiveSandbox, SandboxSettings, find_unavailable_reason
from adapter.workspace.sandbox.seccomp import build_socket_filter
from adapter.workspace.sandbox.shell import run_command
from adapter.workspace.sandbox.user_tool_runner import build_program_argv, run_program
from tests.approvals import record_requests
from tests.waiting import retry_longer
from tests.workspace.sandbox.running import living, wait_for

SECRET = "hunter2-canary"


def python(code):
    return f"{shlex.quote(sys.executable)} -c {shlex.quote(textwrap.dedent(code))}"


def filled(command, **words):
    """Fill ``{name}`` in ``command``, quoted for a shell."""
    return re.sub(r"\{(\w+)\}", lambda found: shlex.quote(str(words[found[1]])), command)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home folder with secrets and an installed tool."""
    home = tmp_path / "home"
    for name in (".ssh/id_rsa", ".config/token", ".cargo/credentials.toml", ".netrc", ".local/share/keyrings/login"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(SECRET)
    (home / ".gitconfig").write_text(f"[user]\n\tname = Ada\n\temail = ada@x\n[http]\n\textraHeader = {SECRET}\n")
    (home / ".local/bin").mkdir()
    (home / ".local/bin/mytool").write_text("#!/bin/sh\necho my tool\n")
    (home / ".local/bin/mytool").chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{home}/.local/bin:{os.environ['PATH']}")
    return home


@pytest.fixture(params=["bwrap", "landlock"])
def level(request):
    gap = find_unavailable_reason(request.param)
    if gap is not None:
        pytest.skip(f"no {request.param} here: {gap.why}")
    return request.param


@pytest.fixture
def bwrap(home):
    if find_unavailable_reason("bwrap") is not None:
        pytest.skip("only bubblewrap can")


@pytest.fixture
def confine(root, home):
    """Create sandboxes of the workspace, which are closed after the test."""
    with ExitStack() as stack:

        def confine(*settings, **folders):
            confinement = ActiveSandbox(SandboxSettings(*settings, **folders), root.path)
            stack.callback(confinement.close)
            return confinement

        yield confine


@pytest.fixture
def shell(root, level, confine):
    """Run a command in the sandbox, and return its outcome."""
    confinement = confine(level)
    return lambda command, **options: run_command(root, RunCommand(command, **options), confinement)


@pytest.fixture
def bystander(nap):
    """A process of the user with a secret in its environment."""
    with subprocess.Popen(nap.split(), env=os.environ | {"BYSTANDER": SECRET}) as process:
        yield process
        assert process.poll() is None, "a command ended a process that was none of its own"
        process.kill()


PTRACE = """
    import ctypes, sys
    libc = ctypes.CDLL(None, use_errno=True)
    print("attached" if libc.ptrace(16, {pid}, 0, 0) == 0 else "no")
"""
DEVICE = """
    import os, stat
    try:
        os.mknod("disk", 0o600 | stat.S_IFBLK, os.makedev(*{numbers}))
        print("made", open("disk", "rb").read(8))
    except OSError as error:
        print("no", error.errno)
"""
DAEMON = """
    import os, sys, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(0.2)
            open(sys.argv[1], "w").write("escaped")
        os._exit(0)
"""
READS = {
    "a neighbor by name": "cat ../secret/key ../ws-evil/file",
    "a neighbor by its path": "cat {base}/secret/key",
    "the list of neighbors": "ls {base} && cat {base}/*/key",
    "a key at home": "cat ~/.ssh/id_rsa {home}/.ssh/id_rsa {home}/.netrc {home}/.config/token",
    "credentials beside tools": "cat {home}/.cargo/credentials.toml {home}/.local/share/keyrings/login",
    "a header in .gitconfig": "cat ~/.gitconfig {home}/.gitconfig; git config --get http.extraHeader",
    "through a link": "ln -s {base}/secret link; cat link/key",
    "through a hard link": "ln {base}/secret/key here; cat here",
    "the environment of another": "cat /proc/{pid}/environ /proc/[0-9]*/environ",
    "the root of another": "cat /proc/{pid}/root{base}/secret/key /proc/{pid}/cwd/../secret/key",
    "a namespace of one's own": 'unshare -Urm sh -c \'mount --bind "$0"/secret .; cat key "$0"/secret/key\' {base}',
    "what is mounted": "umount -l {base}; umount -l /tmp; cat {base}/secret/key",
    "a root of one's own": "chroot / cat {base}/secret/key",
    "the parent's descriptors": "for fd in 3 4 5 6 7 8 9; do cat <&$fd; done; ls -l /proc/$PPID/fd/ /proc/$PPID/cwd/",
    "debugging": python(PTRACE),
    "passwords": "cat /etc/shadow /etc/gshadow | grep -v '^$' | sed 's/^/{secret} /'",
}


@pytest.mark.parametrize("way", READS)
def test_command_cannot_read_outside_workspace(shell, directory, tmp_path, home, bystander, way):
    """Not by name, link, another process, mounting or debugging."""
    (tmp_path / "secret" / "key").write_text(SECRET)
    run = shell(filled(READS[way], base=tmp_path, home=home, pid=bystander.pid, secret=SECRET))
    assert run.exit_code is not None
    assert SECRET not in run.output
    assert "hunter2" not in run.output
    assert "attached" not in run.output


WRITES = {
    "by its path": "echo x > {base}/secret/key; echo x > {base}/escaped; mkdir {base}/escaped",
    "by the way up": "echo x > ../escaped; cd ..; echo x > escaped",
    "through a link": "ln -s {base} up; echo x > up/escaped; ln -s {base}/secret/key k; echo x > k",
    "at home": "echo x >> {home}/.bashrc; echo x > {home}/escaped; echo x > {home}/.local/bin/mytool",
    "moving out": "echo x > f; mv f {base}/escaped; cp -r . {base}/escaped",
    "moving in": "mv {base}/secret .; rm -rf {base}/secret {base}/ws-evil",
    "times and sizes": "touch {base}/escaped {base}/secret/new; truncate -s 0 {base}/secret/key",
    "modes": "chmod 777 {base}/secret/key; chmod 777 {base}/secret; touch -d 2001-01-01 {base}/secret/key",
    "a daemon": python(DAEMON) + " {outside}; sleep 0.5",
    "the system": "touch /usr/escaped /etc/escaped /opt/escaped; rm -f /usr/escaped",
}


@pytest.mark.parametrize("way", WRITES)
def test_command_cannot_write_outside_workspace(shell, level, directory, tmp_path, home, way):
    """Files next to the workspace, at home and of the system are unchanged."""
    if (way, level) == ("modes", "landlock"):
        pytest.skip("a known hole: Landlock does not govern chmod(2), chown(2) and utime(2)")

    def outside():
        found = {}
        for path in sorted(tmp_path.rglob("*")):
            if directory not in (path, *path.parents):
                status = path.lstat()
                content = path.read_bytes() if path.is_file() else b""
                found[str(path)] = (status.st_mode, status.st_mtime_ns, content)
        return found

    before = outside()
    shell(filled(WRITES[way], base=tmp_path, home=home, outside=tmp_path / "escaped"))
    assert outside() == before
    assert not any(Path(folder, "escaped").exists() for folder in ("/usr", "/etc", "/opt"))


@pytest.mark.parametrize("command", ["kill -9 {pid}", "kill -STOP {pid}", "kill -9 $PPID"])
def test_command_cannot_signal_unrelated_processes(shell, bystander, command):
    """`bystander` detects signals."""
    if find_unavailable_reason("bwrap") is not None and landlock.get_abi() < 6:
        pytest.skip("this Landlock does not scope signals")
    shell(f"({command.replace('{pid}', str(bystander.pid))}); echo done")
    assert state_of(bystander) == "S"


@pytest.mark.parametrize("command", ["kill -CONT -1", "pkill -CONT ."])
def test_command_cannot_signal_all_processes(shell, bystander, command):
    """Not even with kill -1. SIGCONT is harmless if the sandbox fails."""
    if find_unavailable_reason("bwrap") is not None and landlock.get_abi() < 6:
        pytest.skip("this Landlock does not scope signals")
    bystander.send_signal(signal.SIGSTOP)
    assert wait_for(lambda: state_of(bystander) == "T")
    shell(f"({command}); echo done")
    assert state_of(bystander) == "T"
    bystander.send_signal(signal.SIGCONT)


def state_of(process):
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]


SOCKETS = {
    "tcp": ("AF_INET", "SOCK_STREAM"),
    "udp": ("AF_INET", "SOCK_DGRAM"),
    "unix": ("AF_UNIX", "SOCK_STREAM"),
    "abstract": ("AF_UNIX", "SOCK_STREAM"),
}


@pytest.mark.parametrize("kind", SOCKETS)
@pytest.mark.parametrize("network", [False, True], ids=["without network", "with network"])
def test_sockets_reach_only_allowed_families(root, confine, level, tmp_path, monkeypatch, kind, network):
    """The network only if it is allowed; Unix sockets of daemons never."""
    family, style = SOCKETS[kind]
    monkeypatch.chdir(tmp_path)
    with socket.socket(getattr(socket, family), getattr(socket, style)) as server:
        address = {"unix": str(tmp_path / "s"), "abstract": f"\0adapter-{os.getpid()}"}.get(kind, ("127.0.0.1", 0))
        server.bind(address)
        server.settimeout(0.3 if not network or family == "AF_UNIX" else 10)
        if style == "SOCK_STREAM":
            server.listen()
        code = f"""
            import socket
            with socket.socket(socket.{family}, socket.{style}) as client:
                client.connect({server.getsockname()!r})
                client.send(b"hello")
        """
        confinement = confine(level, network)
        run = run_command(root, RunCommand(python(code)), confinement)
        try:
            if style == "SOCK_STREAM":
                server.accept()[0].close()
            else:
                server.recv(9)
            reached = True
        except TimeoutError:
            reached = False
    assert reached == (network and family == "AF_INET"), run.output
    assert (run.exit_code == 0) == reached or (kind == "udp" and level == "bwrap")


@pytest.mark.parametrize("network", [False, True], ids=["without network", "with network"])
def test_desktop_sockets_are_unreachable(root, confine, level, tmp_path, monkeypatch, network):
    """X11, Wayland, D-Bus and the ssh-agent: neither their files nor their environment variables."""
    runtime, display = tmp_path / "run", f"\0/tmp/.X11-unix/X{os.getpid()}"
    runtime.mkdir()
    desktop = {
        "XDG_RUNTIME_DIR": str(runtime), "DISPLAY": f":{os.getpid()}", "XAUTHORITY": str(runtime / "xauth"),
        "WAYLAND_DISPLAY": "wayland-0", "DBUS_SESSION_BUS_ADDRESS": f"unix:path={runtime}/bus",
        "SSH_AUTH_SOCK": f"{runtime}/agent",
    }  # fmt: skip
    for name, value in desktop.items():
        monkeypatch.setenv(name, value)
    (runtime / "xauth").write_text("cookie")
    code = f"""
        import os, socket
        from contextlib import suppress
        print(*(name for name in {sorted(desktop)} if name in os.environ))
        for place in {[display, *(f"{runtime}/{name}" for name in ("bus", "wayland-0", "agent"))]!r}:
            with suppress(OSError), socket.socket(socket.AF_UNIX) as client:
                client.connect(place)
                print("reached", place)
        with suppress(OSError):
            print(open("{runtime}/xauth").read())
    """
    with ExitStack() as stack:
        monkeypatch.chdir(runtime)
        for place in (display, "bus", "wayland-0", "agent"):
            server = stack.enter_context(socket.socket(socket.AF_UNIX))
            server.bind(place)
            server.listen()
        confinement = confine(level, network)
        run = run_command(root, RunCommand(python(code)), confinement)
    assert (run.exit_code, run.output.strip()) == (0, "")


def test_devices_cannot_be_created_or_opened(shell):
    """Root could read the whole disk by its device number."""
    disk = os.stat("/").st_dev
    code = DEVICE.replace("{numbers}", repr((os.major(disk), os.minor(disk))))
    output = shell(f"{python(code)}; head -c 4 /dev/sda /dev/vda /dev/nvme0n1 /dev/mem 2>/dev/null | wc -c").output
    assert "made" not in output
    assert output.split()[-1] == "0"


def test_io_uring_and_the_keyring_are_refused(shell):
    """io_uring opens sockets without `socket`; the keyring holds the user's secrets."""
    if build_socket_filter([]) is None:
        pytest.skip("no filter for this processor")
    code = """
        import ctypes, platform
        libc = ctypes.CDLL(None, use_errno=True)
        numbers = {"x86_64": 250, "aarch64": 219}
        for number in (425, numbers[platform.machine()]):
            print(libc.syscall(number, 8, 0, 0, 0, 0), ctypes.get_errno())
    """
    assert shell(python(code)).output == "-1 1\n-1 1\n"


ORDINARY = {
    "a file": ("mkdir -p a/b && echo hi > a/b/c && mv a/b/c d && ln d e && cat e && rm -r a d e", "hi"),
    "the interpreter": (f"{shlex.quote(sys.executable)} -c 'import pydantic, regex; print(1 + 1)'", "2"),
    "its packages' programs": (f"{shlex.quote(sys.executable)} -m pytest --version", "pytest"),
    "a tool at home": ("mytool", "my tool"),
    "home and temporary files": (
        'f=$(mktemp) && echo t > "$f" && cat "$f" && echo x > ~/.cached && cat ~/.cached',
        "t\nx",
    ),
    "devices": ("echo hi > /dev/null && head -c 3 /dev/zero | wc -c && head -c 2 /dev/urandom | wc -c", "3\n2"),
    "standard streams": ("echo out > /dev/stdout; echo err > /dev/stderr; cat /dev/stdin", "out\nerr"),
    "pipes and jobs": ("(echo b; echo a) | sort & wait; cat <<E\nc\nE", "a\nb\nc"),
    "fifos": ("mkfifo p && (echo through > p &) && cat p", "through"),
    "processes": ("ps -o comm= -p $$ 2>/dev/null || cat /proc/$$/comm", "sh"),
    "who": ('id -un || true; test -n "$HOME" && echo home', "home"),
}
PROGRAMS = {
    "git": (
        "git init -q sub && cd sub && git config user.name x && echo 1 > f && git add f && git commit -qm one"
        " && git log --format=%an%s && git status --short && git diff",
        "Xone",
    ),
    "make": ("printf 'all:\\n\\t@echo made\\n' > Makefile && make -s", "made"),
    "gcc": ("echo 'int main(void){return 7;}' > m.c && gcc -o m m.c; ./m; echo $?", "7"),
    "node": ('node -e \'require("fs").writeFileSync("n", "1"); console.log(40 + 2)\'', "42"),
}


@pytest.mark.parametrize("work", ORDINARY | PROGRAMS)
def test_ordinary_commands_work(shell, work):
    """Files, pipes, compilers, interpreters, repositories."""
    if work in PROGRAMS and shutil.which(work) is None:
        pytest.skip(f"{work} is not installed")
    command, printed = (ORDINARY | PROGRAMS)[work]
    run = shell(command)
    assert run.exit_code == 0, run.output
    assert printed.lower() in run.output.lower()


def test_private_files_last_for_the_session(root, confine, home, level):
    """/tmp and home are shared by the commands of a session, and hidden from others."""
    confinement = confine(level)
    run_command(root, RunCommand('echo kept > "$TMPDIR"/adapter-test-file; echo x > ~/adapter-test-file'), confinement)
    assert run_command(root, RunCommand('cat "$TMPDIR"/adapter-test-file'), confinement).output == "kept\n"
    private = confinement._private
    assert private is not None
    confinement.close()
    assert not Path(private).exists()
    assert not (home / "adapter-test-file").exists()


def test_repository_is_read_only_in_bubblewrap(shell, level, directory):
    """The user's own git would run a hook or setting planted in .git."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    repositories = (directory, directory / "part", directory / "a" / "b" / "c")
    for repository in repositories:
        subprocess.run(["git", "init", "-q", str(repository)], check=True)
        (repository / "f").write_text("1")
    run = shell("git status --short && git diff && cd part && git status --short")
    assert run.exit_code == 0, run.output
    assert "?? f" in run.output
    harm = "echo evil > $d/.git/hooks/pre-commit; mv $d/.git $d/moved; rm -rf $d/.git"
    harm = f"for d in . part a/b/c; do {harm}; done; true"
    if level == "bwrap":
        shell(f"{harm}; git config core.fsmonitor evil")
        for repository in repositories:
            assert not (repository / ".git/hooks/pre-commit").exists()
            assert "evil" not in (repository / ".git/config").read_text()


def test_repository_cannot_be_replaced(shell, level, directory):
    """Its parent folders cannot be moved, but otherwise changed."""
    if level != "bwrap":
        pytest.skip("only bubblewrap can")
    (directory / "a" / "b" / ".git").mkdir(parents=True)
    plant = "mkdir -p a/b/.git; echo evil > a/b/.git/config"
    shell(f"mv a z; {plant}; mv a/b a/z; {plant}; rm -rf a; {plant}")
    assert list((directory / "a" / "b" / ".git").iterdir()) == []
    run = shell("echo 1 > f && mv f a/b/g && mkdir a/new && mv a/new a/newer && mv a/b/g a/newer/h && cat a/newer/h")
    assert (run.exit_code, run.output) == (0, "1\n")


def test_additional_folder_is_accessible(root, confine, level, tmp_path):
    """To read or write, also the workspace's own .git."""
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "f").write_text("given")
    (Path(root.path) / ".git").mkdir()
    write = (str(tmp_path / "given"), f"{root.path}/.git")
    confinement = confine(level, read=(str(tmp_path / "secret"),), write=write)
    command = "cat ../secret/key; echo x >> ../given/f; touch .git/index; echo x > ../secret/key; cat ../ws-evil/file"
    run = run_command(root, RunCommand(command), confinement)
    assert "hunter2" in run.output
    assert (tmp_path / "given" / "f").read_text() == "givenx\n"
    assert (Path(root.path) / ".git" / "index").exists()
    assert (tmp_path / "secret" / "key").read_text() == "hunter2"
    with pytest.raises(UsageError, match="does not exist"):
        confine(level, read=("/no/such/folder",))


def test_link_in_readable_folder_can_be_run(root, confine, level, tmp_path):
    """Like the Python of a virtual environment."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "tool").write_text("#!/bin/sh\necho a tool")
    (tmp_path / "tools" / "tool").chmod(0o755)
    (tmp_path / "tools" / "link").symlink_to("tool")
    confinement = confine(level, read=(str(tmp_path / "tools"),))
    operation = RunProgram(str(tmp_path / "tools" / "link"), ())
    assert run_program(root, operation, build_program_argv(root, operation), None, confinement).output == "a tool\n"


def test_linked_worktree_reads_its_repository(root, home, level, tmp_path):
    """Only if the repository names the worktree; a file in the workspace alone is not enough."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@x", "-C", str(tmp_path / "main")]
    subprocess.run(["git", "init", "-q", str(tmp_path / "main")], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(tmp_path / "linked")], check=True)
    assert find_git_directory_elsewhere(str(tmp_path / "linked")) == str(tmp_path / "main" / ".git")
    with WorkspaceRoot(tmp_path / "linked") as linked:
        confinement = ActiveSandbox(SandboxSettings(level), linked.path)
        run = run_command(linked, RunCommand("git log --format=%s && git status --short"), confinement)
        confinement.close()
    assert run.output == "first\n"
    workspace = Path(root.path)
    (workspace / ".git").write_text(f"gitdir: {tmp_path}/secret\n")
    assert find_git_directory_elsewhere(root.path) is None
    # What a command can write: a whole repository that vouches for itself and points elsewhere.
    forged = workspace / "forged" / "worktrees" / "x"
    forged.mkdir(parents=True)
    (workspace / "forged" / "HEAD").write_text("ref: refs/heads/main\n")
    (forged / "commondir").write_text(f"{tmp_path}/secret\n")
    (forged / "gitdir").write_text(f"{workspace}/.git\n")
    (workspace / ".git").write_text(f"gitdir: {forged}\n")
    assert find_git_directory_elsewhere(root.path) in (None, str(workspace / "forged"))


def test_links_in_workspace_grant_no_access(root, confine, home, level, tmp_path, monkeypatch):
    """A command could replace the virtual environment on PATH by a link, for the next session."""
    workspace = Path(root.path)
    (workspace / ".venv").symlink_to(home / ".config")
    (workspace / "bin").symlink_to(tmp_path / "secret")
    (workspace / ".git").symlink_to(tmp_path / "secret")
    monkeypatch.setenv("VIRTUAL_ENV", str(workspace / ".venv"))
    (tmp_path / "alias").symlink_to(workspace)
    monkeypatch.setenv("PATH", f"{workspace}/bin:{tmp_path}/alias/bin:{os.environ['PATH']}")
    confinement = confine(level)
    command = filled(
        "cat .venv/token bin/key .git/key {home}/.config/token {base}/secret/key", home=home, base=tmp_path
    )
    run = run_command(root, RunCommand(filled(command, home=home, base=tmp_path)), confinement)
    assert SECRET not in run.output
    assert "hunter2" not in run.output
    for given in (f"{workspace}/.git", f"{tmp_path}/alias/.venv"):
        with pytest.raises(UsageError, match="leaves the workspace through a link"):
            confine(level, write=(given,))


def test_links_in_the_private_home_are_not_followed(root, confine, level, tmp_path):
    """A command could have put a link in the place of the next session's folder."""
    confinement = confine(level)
    run_command(
        root, RunCommand(filled("rm -rf ~/.local; ln -s {base}/secret ~/.local; ls -la ~", base=tmp_path)), confinement
    )
    assert run_command(root, RunCommand("cat ~/.local/key; true"), confinement).output.count("hunter2") == 0
    assert [path.name for path in (tmp_path / "secret").iterdir()] == ["key"]


def test_repository_swapped_for_link_is_not_mounted(root, confine, bwrap, tmp_path, monkeypatch):
    """The folder is checked again after the mount, before anything runs."""
    workspace = Path(root.path)
    (workspace / "sub" / ".git").mkdir(parents=True)
    looked = find_identity

    def then_swapped(folder, path):
        identity = looked(folder, path)
        if not path.endswith(".git"):
            return identity
        (workspace / "sub" / ".git").rename(workspace / "sub" / "moved")
        (workspace / "sub" / ".git").symlink_to("../../home/.config")
        return identity

    confinement = confine("bwrap")
    monkeypatch.setattr(protected_paths, "find_identity", then_swapped)
    # Without a place of that name in the sandbox, bubblewrap would refuse by itself.
    (Path(confinement._create_directories()) / "home" / ".config").mkdir()
    run = run_command(root, RunCommand("cat ~/.config/token sub/.git/token; touch ran"), confinement)
    assert run.exit_code == 126
    assert run.output.strip() == CHANGED
    assert not (workspace / "ran").exists()
    assert looked(root.path, f"{root.path}/sub/.git") is None


def test_commands_cannot_access_denied_paths(directory, bwrap):
    """Rules about files hide or freeze them, also by folder."""
    for name in ("secrets/deep/a", "conf/b.env", "locked/c", "d"):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(SECRET)
    rules = [PermissionRule.parse("deny", f"read_file({what})") for what in ("secrets/**", "*.env")]
    rules.append(PermissionRule.parse("deny", "write_file(locked/)"))
    with Workspace(directory, approve=lambda _: True, sandbox="bwrap", rules=rules) as workspace:
        command = "cat secrets/deep/a conf/b.env; echo x > locked/c; rm -r locked; cat locked/c d; ls -R secrets"
        content = workspace.run("run_command", {"command": command, "cwd": "."}).content
    assert content.count(SECRET) == 2
    assert "deep" not in content.replace("secrets/deep/a", "")
    assert (directory / "locked" / "c").read_text() == SECRET


@pytest.mark.parametrize("writes", [(), (".git",), ("../beside",)], ids=["", "git", "beside"])
@pytest.mark.parametrize("network", [False, True])
def test_sandbox_note_matches_its_effect(root, confine, level, writes, network, tmp_path):
    """Each claim of the note, and of the line for users, is tried by a command."""
    workspace = Path(root.path)
    (workspace / ".git").mkdir()
    (workspace.parent / "beside").mkdir(exist_ok=True)
    write = tuple(str((workspace / name).resolve()) for name in writes)
    confinement = confine(level, network, write=write)

    def can(command: str) -> bool:
        return run_command(root, RunCommand(command), confinement).exit_code == 0

    run = run_command(root, RunCommand("echo Permission denied; exit 1"), confinement)
    (note,) = run.notes
    assert can("echo x > .git/x") is ("(not `.git`)" not in note)
    assert can("echo x > .git/x") is ("`.git`, and modes" in confinement.text or ".git" in writes)
    assert can("echo x > free")
    assert can(filled("echo x > {beside}/x", beside=workspace.parent / "beside")) is ("beside" in note)
    assert not can(filled("echo x > {key}", key=tmp_path / "secret" / "key"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connect = f"import socket; socket.create_connection(('127.0.0.1', {listener.getsockname()[1]}), 5)"
        assert can(python(connect)) is ("no network" not in note)


@pytest.mark.parametrize(
    ("git", "config", "command", "kept"),
    [
        ("", "", "echo x > sep/config; rm -r sep/hooks; mv sep other", "sep/config"),
        ("link", "", "echo x > .git/config; echo x > sep/hooks/pre-commit", "sep/config"),
        ("gitdir: a/b/c/sep\n", "", "echo x > a/b/c/sep/config", "a/b/c/sep/config"),
        ("", "[core]\n\thooksPath = tools\n", "echo x > tools/pre-commit", "tools/pre-commit"),
        ("", "[core]\n\tfsmonitor = ./tools/pre-commit --all\n", "echo x > tools/pre-commit", "tools/pre-commit"),
    ],
)
def test_commands_cannot_change_git_data_under_any_name(directory, bwrap, git, config, command, kept):
    """Folders recognized by content, the target of `.git`, and paths in the configuration."""
    sep = directory / ("a/b/c/sep" if git.startswith("gitdir") else "sep")
    for folder in (sep, *([directory / ".git"] if not git else [])):
        for name in ("HEAD", "config", "objects/x", "refs/x", "hooks/pre-commit"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(config if name == "config" and folder.name == ".git" else "kept")
    (directory / "tools").mkdir()
    (directory / "tools" / "pre-commit").write_text("kept")
    if git == "link":
        (directory / ".git").symlink_to("sep")
    elif git:
        (directory / ".git").write_text(git)
    with Workspace(directory, approve="yolo", sandbox="bwrap") as workspace:
        result = workspace.run("run_command", {"command": f"echo x > free; {command}", "cwd": "."})
    assert (directory / kept).read_text() == "kept", result.content
    assert (directory / "free").read_text() == "x\n"
    assert not (directory / "other").exists()


def test_too_many_denied_paths_are_an_error(directory, bwrap, monkeypatch):
    """Nothing is run."""
    for number in range(20):
        (directory / f"{number}.env").write_text("x")
    rules = [PermissionRule.parse("deny", "read_file(*.env)")]
    for limit in ("MAX_HIDDEN", "MAX_SEARCHED"):
        with monkeypatch.context() as patch:
            patch.setattr(protected_paths, limit, 10)
            with Workspace(directory, approve=lambda _: True, sandbox="bwrap", rules=rules) as workspace:
                result = workspace.run("run_command", {"command": "echo ran", "cwd": "."})
        assert not result.ok
        assert "rules" in (result.error or "")


def test_state_folder_in_workspace_is_hidden(directory, bwrap, monkeypatch):
    """Wherever the user keeps the records of changes."""
    with Workspace(directory, approve="yolo", state=directory / "state", sandbox="bwrap") as workspace:
        assert workspace.run("write_file", {"path": "a", "content": "x"}).ok
        assert list((directory / "state").iterdir())
        found = workspace.run("run_command", {"command": "ls -A state; rm -rf state; true", "cwd": "."})
        assert "toolcall" not in found.content
        assert workspace.undo()


def test_exit_codes_are_the_same_as_without_sandbox(root, shell, monkeypatch):
    """Exit codes, signals, leftover files, SIGTERM, and a missing program."""
    assert shell("exit 7").exit_code == 7
    assert shell("kill -9 $$").exit_code == 137
    left = shell("sleep 100 & sleep 100 & echo started")
    assert (left.exit_code, left.notes) == (
        0,
        ("2 processes that it had left in the background ended with the command",),
    )
    waiting = "trap 'echo bye; exit 3' TERM; sleep 600 & wait"
    heard = retry_longer(lambda limit: shell(waiting, timeout_s=limit), lambda it: it.output, 0.5)
    assert heard.timed_out
    assert heard.output == "bye\n"
    assert heard.notes == ()


@pytest.mark.parametrize(
    "way", ["{nap} &", "nohup setsid {nap} >/dev/null 2>&1 &", "setsid sh -c 'trap \"\" TERM; {nap} & {nap}' &"]
)
@pytest.mark.parametrize("then", ["sleep 0.2", "exec sleep 60"], ids=["it ends", "time is up"])
def test_command_leaves_no_processes(shell, nap, monkeypatch, way, then):
    """Neither bubblewrap's own nor the command's."""
    monkeypatch.setattr("adapter.workspace.sandbox.shell.GRACE_S", 0.2)
    shell(f"{way.replace('{nap}', nap)}\n{then}", timeout_s=1 if "exec" in then else 30)
    assert living(nap) == []


def test_background_commands_and_programs_are_confined(root, confine, level, tmp_path, nap):
    confinement = confine(level)
    commands = BackgroundCommands()
    commands.start(
        root,
        StartCommand(filled("cat {key} > stolen; touch done; ", key=tmp_path / "secret" / "key") + nap),
        confinement,
    )
    assert wait_for((Path(root.path) / "done").exists)
    assert (Path(root.path) / "stolen").read_text() == ""
    commands.close()
    assert living(nap) == []
    tool = tmp_path / "elsewhere" / "tool"
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\necho a tool; ls "${0%/*}"/../secret')
    tool.chmod(0o755)
    operation = RunProgram(str(tool), ())
    assert "a tool" in run_program(root, operation, build_program_argv(root, operation), None, confinement).output
    operation = RunProgram("cat", ((f"{tmp_path}/secret/key",),))
    ran = run_program(root, operation, build_program_argv(root, operation), None, confinement)
    assert ran.exit_code == 1
    assert "hunter2" not in ran.output


def test_workspace_describes_active_sandbox(directory, home, level):
    """In the question, the result and the workspace's description."""
    asked, approve = record_requests()
    with Workspace(directory, approve=approve, sandbox=level) as workspace:
        result = workspace.run("run_command", {"command": "true", "cwd": "."})
        read = workspace.run("list_directory", {"path": "."})
        assert asked[0].sandbox == result.sandbox == workspace.sandbox
    assert "no network" in result.sandbox
    assert read.sandbox == ""


def test_writable_folder_is_named(directory, home, level, tmp_path):
    """ "Only in the workspace" would be wrong."""
    (tmp_path / "more").mkdir()
    with Workspace(
        directory, approve="yolo", sandbox=SandboxSettings(level, write=(str(tmp_path / "more"),))
    ) as workspace:
        assert f"changes only in the workspace, {tmp_path / 'more'};" in workspace.sandbox


def test_missing_sandbox_is_reported(without_sandbox, directory):
    """With the reason; and `require` refuses to start."""
    asked, approve = record_requests()
    with Workspace(directory, approve=approve) as workspace:
        result = workspace.run("run_command", {"command": "echo ran", "cwd": "."})
    assert result.content.strip() == "ran"
    for text in (asked[0].sandbox, result.sandbox, workspace.sandbox):
        assert text.startswith(NO_SANDBOX)
        assert "bwrap is not installed" in text
    for choice in ("require", "bwrap", "landlock"):
        with pytest.raises(UsageError, match="required but not available"):
            Workspace(directory, sandbox=choice)
    with Workspace(directory, approve="yolo", sandbox="none") as workspace:
        assert workspace.sandbox.startswith(NO_SANDBOX)
        assert "as requested" in workspace.sandbox
    with pytest.raises(UsageError, match="expected one of: auto"):
        SandboxSettings("bubblewrap")  # type: ignore[arg-type]


def test_failed_sandbox_setup_runs_nothing(root, confine, level, monkeypatch):
    """Even if it worked before: the kernel rejects the filter."""
    confinement = confine(level)
    monkeypatch.setattr(sandbox, "build_socket_filter", lambda *_, **__: b"\xff" * 8)
    with pytest.raises(ToolError, match=r"could not be set up \(seccomp"):
        run_command(root, RunCommand("touch ran"), confinement)
    assert not (Path(root.path) / "ran").exists()


def test_failure_possibly_caused_by_sandbox_is_explained(shell):
    """So that a model does not try again. Other failures are unchanged."""
    assert "no network" in shell("echo x > /usr/x").notes[0]
    assert shell("exit 3").notes == ()


def test_only_git_identity_is_copied(home):
    """Other sections contain tokens."""
    assert read_git_identity(str(home)) == "[user]\n\tname = Ada\n\temail = ada@x\n"
    (home / ".gitconfig").write_text(
        '[user "x"]\n\ta = 1\n[USER]\nname = b\n[include]\npath = c\n[url "d"]\ninsteadOf = e\n'
    )
    assert read_git_identity(str(home)) == "[USER]\nname = b\n"


def test_tool_folders_exclude_home_folder(home, tmp_path):
    """Neither the home folder nor its parents, whatever PATH contains."""
    found = list_tool_directories(
        {"PATH": f"{home}:{tmp_path}/bin:/:relative:{home}/.local/bin"}, str(home), str(tmp_path / "ws")
    )
    assert f"{home}/.local/bin" in found
    assert not {str(home), str(tmp_path), "/"} & set(found)


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no folder in memory here")
def test_workspace_below_dev_works(level):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, WorkspaceRoot(folder) as root:
        confinement = ActiveSandbox(SandboxSettings(level), root.path)
        run = run_command(root, RunCommand("echo new > made && cat made && ls /dev/null"), confinement)
        confinement.close()
        assert (run.output, run.exit_code) == ("new\n/dev/null\n", 0)
        assert Path(folder, "made").read_text() == "new\n"


# --------------------------------------------------------------- older kernels

OLD_TRUNCATION = {
    "truncate": "os.truncate(path, 0)",
    "open-read-only": "os.open(path, os.O_RDONLY | os.O_TRUNC)",
    "open-no-access": "os.open(path, 3 | os.O_TRUNC)",
    "open-call": "libc.syscall(2, path.encode(), os.O_RDONLY | os.O_TRUNC) if machine == 'x86_64' else None",
    "openat2": "libc.syscall(437, -100, path.encode(), struct.pack('QQQ', os.O_TRUNC, 0, 0), 24)",
    "creat": "libc.creat(path.encode(), 0o600)",
    "ftruncate": "os.ftruncate(os.open(path, os.O_RDWR), 0)",
}


@pytest.mark.skipif(not landlock.get_abi(), reason="the kernel has no Landlock")
@pytest.mark.parametrize("abi", [1, 2, 3])
@pytest.mark.parametrize("readable", [False, True], ids=["unreadable", "readable"])
def test_old_landlock_cannot_empty_files_elsewhere(root, confine, tmp_path, monkeypatch, abi, readable):
    """Linux 5.13 to 6.1 do not restrict truncation: a filter blocks the calls. The workspace can still be changed."""
    if abi > landlock.get_abi():
        pytest.skip("the kernel is older")
    monkeypatch.setattr(landlock, "get_abi", lambda: abi)
    victim = tmp_path / "elsewhere" / "file"
    victim.parent.mkdir()
    victim.write_text("kept")
    confinement = confine("landlock", read=(str(victim.parent),) if readable else ())
    assert "emptied" not in confinement.text
    lines = "\n".join(
        f"try:\n    {way}\nexcept OSError as error:\n    print({name!r}, error.errno)"
        for name, way in OLD_TRUNCATION.items()
    )
    head = f"import ctypes, os, platform, struct\npath, machine = {str(victim)!r}, platform.machine()\n"
    code = f"{head}libc = ctypes.CDLL(None)\n{lines}"
    done = run_command(root, RunCommand(python(code)), confinement)
    assert done.exit_code == 0, done.output
    assert "truncate 13" in done.output
    assert victim.read_text() == "kept", done.output
    own = run_command(
        root, RunCommand("echo old > own && echo x > own && cat own && : > own && wc -c < own"), confinement
    )
    assert own.output.split() == ["x", "0"]


def test_unknown_machine_with_old_landlock_is_described(root, monkeypatch):
    monkeypatch.setattr(landlock, "get_abi", lambda: 2)
    monkeypatch.setattr(sandbox, "build_socket_filter", lambda *_, **__: None)
    confinement = ActiveSandbox(SandboxSettings(), root.path, level="landlock")
    assert "files elsewhere can be emptied" in confinement.text
