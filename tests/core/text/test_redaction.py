"""Credentials are removed from transcripts, errors, answers to clients and the environment of commands."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapter.core.text import redaction
from adapter.core.text.redaction import Redactor
from adapter.recording.transcript import TranscriptWriter
from adapter.recording.transcript_lines import ApprovalLine
from adapter.tools.operations.permissions import ApprovalDecision
from adapter.workspace import Workspace
from tests.command_line import adapter
from tests.http_requests import send
from tests.scripted_server import CHAT, MODELS, as_error, as_json, as_stream, delta
from tests.serving import serving

CANARY = "canary-7f3a9c51e2"
ENVIRONMENT = {
    "OPENAI_API_KEY": CANARY,
    "MY_SERVICE_TOKEN": 'tok"en\\with/' + CANARY,
    "DB_PASSWORD": "pass with spaces " + CANARY,
    "AUTH_MODE": "on",
    "SSH_AUTH_SOCK": "/run/user/1000/agent.sock",
    "PATH": "/usr/bin:/bin",
}
SECRETS = Redactor(ENVIRONMENT)
TOOL = {"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}

SHAPES = {
    "Authorization: Bearer abcdefgh.ijklmnop": "abcdefgh.ijklmnop",
    '{"Authorization": "Basic dXNlcjpwYXNzd29yZA=="}': "dXNlcjpwYXNzd29yZA",
    "x-api-key: 0123456789abcdef": "0123456789abcdef",
    "curl -H 'authorization: token abcdef0123456789'": "abcdef0123456789",
    "bearer abcdefghijklmnopqrstuvwxyz": "abcdefghijklmnopqrstuvwxyz",
    "sk-proj-abcdefghijklmnopqrstuv": "sk-proj-abcdefghijklmnopqrstuv",
    "ghp_" + "a1" * 18: "a1a1",
    "https://user:s3cret-pass@example.org/x": "s3cret-pass",
    "AKIAIOSFODNN7EXAMPLE": "AKIAIOSFODNN7EXAMPLE",
    "https://0123456789abcdef0123@example.org/x.git": "0123456789abcdef0123",
    "https://example.org/v1?a=b&access_token=0123456789abcdef": "0123456789abcdef",
    "https://example.org/v1?key=0123456789abcdef#x": "0123456789abcdef",
    "https://b.s3.test/o?X-Amz-Signature=0123456789abcdef": "0123456789abcdef",
    '{"apiKey": "0123456789abcdef"}': "0123456789abcdef",
    '{\\"api_key\\": \\"0123456789abcdef\\"}': "0123456789abcdef",
    '{"password" : "correct-horse"}': "correct-horse",
    "{'client_secret': 'correct-horse'}": "correct-horse",
    "X-Auth-Token: 0123456789abcdef": "0123456789abcdef",
    "Set-Cookie: session=0123456789abcdef; HttpOnly": "0123456789abcdef",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmN": "dozjgNryP4J3jVmN",
    "sk_live_0123456789abcdefXYZ": "0123456789abcdef",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIB\nabc\n-----END RSA PRIVATE KEY-----": "MIIB",
}
SHAPES |= {
    "DB_PASSWORD=hunter22": "hunter22",
    "export PGPASSWORD='hunter22!'": "hunter22!",
    'MYSQL_PWD="hunter22"': "hunter22",
    "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG": "wJalrXUtnFEMI",
    "env MY_SERVICE_TOKEN=abcdef123 ./run": "abcdef123",
    "SECRET_KEY_BASE=0123456789abcdef": "0123456789abcdef",
    "SSH_PASSPHRASE=correct-horse": "correct-horse",
    "GOOGLE_CREDENTIALS=abc.def.ghi": "abc.def.ghi",
    "x\ndb_password=hunter22\n": "hunter22",
    "x\n  spring.datasource.password=hunter22\n": "hunter22",
}
SHAPES |= {
    "DB_PASSWORD: hunter22": "hunter22",
    "password: hunter22!": "hunter22!",
    "password = 'hunter22'": "hunter22",
    '$env:DB_PASSWORD = "hunter22"': "hunter22",
    "DB_PASSWORD='pa$$w0rd!'": "pa$$w0rd!",
    "client_secret: 'abc-0123456789'": "abc-0123456789",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG": "wJalrXUtnFEMI",
    '{"api_secret": "correct-horse"}': "correct-horse",
    '{"private_key": "correct-horse"}': "correct-horse",
    "mysql --password=hunter22 -u me": "hunter22",
    "gh auth --token abcdef0123456789": "abcdef0123456789",
    "run --api-key 'abcdef0123456789'": "abcdef0123456789",
    "docker login --registry-password hunter22": "hunter22",
    "redis://:hunter22@db.test:6379/0": "hunter22",
    "https://app.test/done#access_token=0123456789abcdef": "0123456789abcdef",
    "jdbc:mysql://db.test/x?user=a&password=hunter22": "hunter22",
    "Server=db;User Id=a;Password=hunter22;": "hunter22",
    "AccountName=a;AccountKey=Zm9vYmFyYmF6cXV4;x": "Zm9vYmFyYmF6cXV4",
    "<db:password>hunter22</db:password>": "hunter22",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nMIIB\n-----END OPENSSH PRIVATE KEY-----": "MIIB",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\nMIIB\n-----END PGP PRIVATE KEY BLOCK-----": "MIIB",
    "xapp-1-A0123456789-0123456789-abcdef": "A0123456789",
    "SG.abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuvwxyz0123456789abcdefg": "abcdefghijklmnop",
    "shpat_0123456789abcdef0123456789abcdef": "0123456789abcdef",
    "dop_v1_" + "0123456789abcdef" * 4: "0123456789abcdef",
    "ya29.abcdefghijklmnopqrstuvwxyz": "abcdefghijklmnop",
}
PLAIN = [
    "password: str, secret: bytes = b'', passphrase: Optional[str] = None, token: int = 128001",
    "password = input('Password: '); secret = 'ordinary'; DB_PASSWORD: SecretStr; password: $PASSWORD2",
    "--password-stdin --token TOKEN --max-token 100000 --eos-token 128001 --secret NAME --api-key $KEY1",
    "<password> and <password></password>; x;password=y; #token=x; the_private_key: rsa; PWD=/home",
    "see https://example.org/a:b and C:\\x; sg.add(y); xapp-icon; shpat_; ya29.",
    "TOKEN=re.compile(x); MAX_TOKENS=4096; KEY = value; KEYBOARD=qwertyuiop; PASSED=everything",
    "connect(password=password_of_user); monkey=banana1234; PASSWORD=$PASSWORD",
    "DB_PASSWORD=x",
    "the author of keyboard.py wrote a token parser: authorization is missing",
    "bearer of news",
    "https://example.org:8080/x?y=1 and git@github.com:a/b.git",
    "sk-learn and skip-connections",
    "/run/user/1000/agent.sock is on",
    '{"api_key": ""}',
    "password = get_password(user); token: str = field(); secret_key: bytes",
    "the cookie: chocolate chips; a tokenizer: fast; max_tokens: 512",
    "https://example.org/search?q=access_token&sort_key=created&page=2",
    "https://example.org/@someone and git+ssh://git@github.com/a/b",
    '{"type": "object", "properties": {"password": {"type": "string"}}}',
    "-----BEGIN CERTIFICATE-----",
]


@pytest.mark.parametrize("text", SHAPES)
def test_redact_replaces_text_in_the_form_of_a_credential(text):
    """The words around it are unchanged."""
    found = SECRETS.redact(f"before {text} after")
    assert found.startswith("before ")
    assert found.endswith(" after")
    assert "[redacted]" in found
    assert SHAPES[text] not in found


@pytest.mark.parametrize("text", PLAIN)
def test_ordinary_text_stays(text):
    """Words about credentials, short values and paths are unchanged."""
    assert SECRETS.redact(text) == text


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "MY_SERVICE_TOKEN", "DB_PASSWORD"])
def test_values_of_variables_are_redacted_in_every_spelling(name):
    """Verbatim, in JSON, in an address, in keys and values. The variable is named."""
    value = ENVIRONMENT[name]
    for text in (value, json.dumps({"x": value}), f"https://x/?q={value}"):
        assert CANARY not in SECRETS.redact(text)
        assert f"[redacted {name}]" in SECRETS.redact(text)
    assert CANARY not in json.dumps(SECRETS.redact({value: [value, {"a": value, "n": 1}]}))
    assert SECRETS.redact_bytes(b"\xff" + value.encode()) == b"\xff" + f"[redacted {name}]".encode()


@pytest.mark.parametrize(
    "name", ["Authorization", "cookie", "apiKey", "x-api-key", "OPENAI_API_KEY", "db_password", "accessToken", "secret"]
)
def test_field_with_a_secret_name_is_redacted(name):
    """Whatever the value looks like, except short ones, numbers and values inside objects."""
    assert SECRETS.redact({name: "correct horse"}) == {name: "[redacted]"}
    assert SECRETS.redact([{"headers": {name: "Bearer of news"}}]) == [{"headers": {name: "[redacted]"}}]
    for value in ("", "none", 5, None, {"type": "string"}, ["a"], "[redacted X]"):
        assert SECRETS.redact({name: value}) == {name: value}


@pytest.mark.parametrize("name", ["max_tokens", "tokens", "keys", "author", "secretary", "token_type", "key", "path"])
def test_other_fields_stay(name):
    """Their names only look similar."""
    assert SECRETS.redact({name: "some long text"}) == {name: "some long text"}


@example(["-----BEGIN RSA PRIVATE KEY-----\nMIIB\nabc\n-----END RSA PRIVATE KEY-----"], [1, 47], False)
@example(["{'client_secret': 'correct-horse'}"], [4, 19], False)
@given(
    st.lists(st.sampled_from([*ENVIRONMENT.values(), *SHAPES, *PLAIN, "\n", "x", "Bearer", "é"]), max_size=6),
    st.lists(st.integers(0, 400), max_size=20),
    st.booleans(),
)
def test_splitting_hides_nothing_from_the_recorder(parts, cuts, with_reasoning):
    """However an answer is split, the chunks add up to the redacted text, and redacting that changes nothing."""
    text = " ".join(parts)
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    lines: list[str] = []
    recorder = TranscriptWriter(lines.append, SECRETS)
    for start, end in pairwise(places):
        piece = text[start:end]
        recorder.write_chunk("" if with_reasoning else piece, piece if with_reasoning else "", None)
    recorder.write_line(ApprovalLine.from_decision("tool", ApprovalDecision(True)))
    rows = [json.loads(line) for line in lines]
    field = "reasoning" if with_reasoning else "text"
    written = "".join(row.get(field, "") for row in rows)
    assert written == SECRETS.redact(text)
    assert CANARY not in "".join(lines)
    assert SECRETS.redact(written) == written
    assert len(rows) == len(places)


def test_a_crash_loses_at_most_a_word():
    """Chunks are written immediately, except for a possible beginning of a credential."""
    lines: list[str] = []
    recorder = TranscriptWriter(lines.append, SECRETS)
    for word in ("I ", "look ", "at ", "cana"):
        recorder.write_chunk(word, "", None)
    assert [json.loads(line)["text"] for line in lines] == ["I ", "look ", "at "]
    recorder.write_chunk("x" * 5_000, "", None)
    assert len(lines) == 4


def test_patterns_take_linear_time():
    """Also for hostile text: a model must not be able to stall a recording."""
    units = [
        "authorization: ",
        "-----BEGIN PRIVATE KEY-----",
        "sk-",
        "://a:",
        "bearer  ",
        "x" * 10,
        "eyJ.",
        "'",
        "eyJ-",
    ]
    units += ["eyJ-", "eyJaaaaaaaaaaaa.", "?key=", "cookie: a=", "://", "x-", 'password": "', "--a", "<a", "secret: "]
    units += ["password: ", "token='", ";pwd=", "SG.a", "xapp-"]
    for unit in units:
        text = unit * (100_000 // len(unit))
        SECRETS.redact(text)
        SECRETS.find_safe_prefix([text])


def run(*words, cwd, **env):
    return adapter(*words, cwd=cwd, env={**ENVIRONMENT, "PATH": os.environ["PATH"], **env})


def answer(*texts):
    return as_stream(delta(role="assistant"), *map(delta, texts), delta(finish_reason="stop"))


def test_a_recording_holds_no_credential_and_replays_equal(scripted, tmp_path):
    """In the task, files, chunked model text, reasoning, calls, results and the environment of commands."""
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / ".env").write_text(f"KEY={CANARY}\nHEADER=Authorization: Bearer abcdefgh.ijklmnop\n")
    call = json.dumps({"name": "edit_file", "arguments": {"path": ".env", "old_content": CANARY, "new_content": "x"}})
    read = '<tool_call>\n{"name": "read_file", "arguments": {"path": ".env"}}\n</tool_call>'
    command = json.dumps({"name": "run_command", "arguments": {"command": "env | grep -i canary; echo $?", "cwd": "."}})
    environment = f"<tool_call>\n{command}\n</tool_call>"
    scripted.on(MODELS, as_json(200, {"object": "list", "data": [{"id": "m", "object": "model"}]}))
    scripted.on(
        CHAT,
        answer(read),
        answer("It is cana", "ry-7f3a", "9c51e2.\n", f"<tool_call>\n{call}\n</tool_call>"),
        answer(environment),
        answer("Done: Bear", "er abcdefghij", "klmnopqrst"),
    )
    record = tmp_path / "talk.jsonl"
    done = run(
        *(
            "run",
            f"Replace {CANARY}",
            "-w",
            folder,
            "--base-url",
            scripted.url,
            "--approve",
            "yolo",
            "--record",
            record,
        ),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert (folder / ".env").read_text().startswith("KEY=x\n")
    transcript = record.read_text()
    assert CANARY not in transcript
    assert "abcdefghijklmnopqrst" not in transcript
    assert "abcdefgh.ijklmnop" not in transcript
    assert transcript.count("[redacted OPENAI_API_KEY]") >= 5
    replayed = run("replay", record, cwd=tmp_path)
    assert replayed.returncode == 0, replayed.stdout


def test_errors_never_carry_a_key(scripted, tmp_path):
    """Neither if the server repeats the key, nor if the address contains a password."""
    scripted.on(MODELS, as_json(200, {"object": "list", "data": [{"id": "m", "object": "model"}]}))
    scripted.on(CHAT, as_error(401, f"Incorrect API key provided: {CANARY}, Authorization: Bearer {CANARY}"))
    record = tmp_path / "talk.jsonl"
    done = run("run", "hi", "--base-url", scripted.url, "--record", record, cwd=tmp_path)
    assert done.returncode == 3
    assert "[redacted" in done.stderr
    assert CANARY not in done.stderr + done.stdout + record.read_text()
    address = scripted.url.replace("http://", f"http://me:{CANARY}-2@")
    for words in (
        ("run", "hi", "--base-url", address),
        ("run", "hi", "--base-url", f"http://me:{CANARY}-2@127.0.0.1:9"),
    ):
        done = run(*words, cwd=tmp_path)
        assert CANARY not in done.stderr + done.stdout
        assert done.returncode == 3


def test_commands_get_no_credential(tmp_path, monkeypatch):
    """Neither by name nor in the environment of their parent processes."""
    for name, value in ENVIRONMENT.items():
        if name != "PATH":
            monkeypatch.setenv(name, value)
    for level in ("auto", "none"):
        with Workspace(tmp_path, approve="yolo", sandbox=level) as workspace:
            command = "env; cat /proc/self/environ /proc/$PPID/environ /proc/1/environ 2>/dev/null"
            result = workspace.run("run_command", {"command": command, "cwd": "."})
        assert "PATH=" in result.content
        assert CANARY not in result.content


@pytest.mark.parametrize(
    "path",
    [
        ("/v1/chat/completions", {"tools": [TOOL]}),
        ("/v1/chat/completions", {"tools": [TOOL], "stream": True}),
        ("/v1/chat/completions", {}),
        ("/v1/embeddings", {}),
        ("/v1/messages", {"tools": [{"name": "t", "input_schema": {"type": "object"}}], "max_tokens": 9}),
    ],
    ids=["whole", "streamed", "without tools", "passed through", "anthropic"],
)
def test_the_server_gives_no_client_its_key(scripted, monkeypatch, path):
    """A server on another machine gets our key. If it repeats the key, neither clients nor the log see it."""
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    elsewhere = "http://models.invalid"  # reached through a proxy, which is the scripted server
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, scripted.url)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for asked in (CHAT, "/v1/embeddings"):
        scripted.on(elsewhere + asked, as_error(401, f"Incorrect API key provided: {CANARY}"))
    route, fields = path
    with serving(elsewhere) as url:
        body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **fields}
        _, _, answered = send(url, route, body)
    assert any(headers.get("authorization") == f"Bearer {CANARY}" for _, headers, _ in scripted.requests), answered
    assert "Incorrect API key provided" in answered
    assert CANARY not in answered


def test_a_request_that_is_too_large_is_refused(scripted):
    """By its declared size or its real one, and without keeping it in memory."""
    with serving(scripted.url) as url:
        host, _, port = url.removeprefix("http://").removesuffix("/v1").partition(":")
        for chunked in (False, True):
            connection = http.client.HTTPConnection(host, int(port), timeout=60)
            connection.putrequest("POST", "/v1/chat/completions")
            connection.putheader("Content-Type", "application/json")
            connection.putheader(*(("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(10**9))))
            connection.endheaders()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                for _ in range(70 if chunked else 0):
                    connection.send(b"100000\r\n" + b" " * 0x100000 + b"\r\n")
            response = connection.getresponse()
            assert response.status == 413
            assert b"larger than" in response.read()
            connection.close()
    assert not scripted.bodies()


PIECES = [
    "Authorization: Bearer abcdefghijklmnopqrstuvwxyz", "sk-" + "a1" * 20, "https://user:hunter22@host/x", "x" * 40,
    "eyJ" + "a" * 20 + ".eyJ" + "b" * 20 + "." + "c" * 20, '"password": "correct horse"', "token", "é" * 7, "\n", " ",
    "-----BEGIN RSA PRIVATE KEY-----\n" + "Ab0/" * 40 + "\n-----END RSA PRIVATE KEY-----", "?sig=0123456789abcdef",
    "x-y", 'passwd": "Abcdefghij"',
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=30), st.integers(40, 400))
def test_texts_are_searched_a_stretch_at_a_time(pieces, window):
    """The result does not depend on the size of the sections."""
    text = "".join(pieces)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(redaction, "_WINDOW", window)
        found = [match.span() for match in redaction._find_shapes(text)]
    assert found == [match.span() for match in redaction._SHAPES.finditer(text)]
