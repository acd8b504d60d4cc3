"""Damaged and hostile files give a result or one clear error, within limits. See benchmarks/mutated_files.py."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path

import pytest

from adapter.backends import template_file_reader
from adapter.backends.probe_profiles import load_profile
from adapter.backends.template_files import load_chat_template
from adapter.cli.user_config import read_config
from adapter.core.bounded_parsing import parse_json, parse_toml
from adapter.core.errors import UsageError
from adapter.evaluation.toml_scenarios import read_scenarios
from adapter.integrations.mcp.server_config import parse_servers
from adapter.workspace.capabilities import html_text
from adapter.workspace.capabilities.web_fetch import convert_html
from adapter.workspace.sandbox.bounded_worker import JobError, run_bounded, stream_bounded
from benchmarks.mutated_files import KINDS, gguf, run


def test_damaged_files_are_read_or_give_one_error():
    assert run(len(KINDS), seed=1) == []


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def gguf_with(*values: bytes, count: int | None = None) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(values) if count is None else count) + b"".join(values)


TEMPLATE = text("tokenizer.chat_template") + struct.pack("<I", 8) + text("{{ x }}")
WORDS = text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 1) + text("<s>")
BOS = text("tokenizer.ggml.bos_token_id")


@pytest.mark.parametrize(
    "data",
    [
        gguf()[:-5],
        gguf_with(TEMPLATE, count=2**63),
        gguf_with(text("k") + struct.pack("<I", 99)),
        gguf_with(text("k") + struct.pack("<IIQ", 9, 77, 3)),
        gguf_with(text("k") + struct.pack("<II", 9, 9) * 2_000),
        gguf_with(struct.pack("<Q", 2**62)),
        gguf_with(text("tokenizer.ggml.token_type") + struct.pack("<IIQ", 9, 12, 2_000_000)),
        gguf_with(text("tokenizer.chat_template") + struct.pack("<II", 4, 7)),
        gguf_with(text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2_000_000)),
        b"GGUF",
        b'{"chat_template": [1, 2]}',
        b'{"chat_template": [{"name": "default"}]}',
        b'{"chat_template": [{"name": ["x"], "template": 3}]}',
        b'{"chat_template": {"a": 1}}',
        b'["chat_template"]',
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b'{"chat_template": "' + b"x" * 5_000_000 + b'"}',
        b"\xff\xfe",
        b"1" * 10_000,
    ],
    ids=range(20),
)
def test_hostile_template_files_give_one_error(tmp_path, data):
    file = tmp_path / "tokenizer_config.json"
    file.write_bytes(data)
    if len(data) == 200_000 or data[:5] == b'{"a":':  # deep recursion needs the process
        with pytest.raises(UsageError, match="has no chat template"):
            load_chat_template(file)
        return
    (found,) = template_file_reader.run(b"", str(file))
    assert "has no chat template" in found["fault"]
    assert len(found["fault"]) < 600 + len(str(file))


@pytest.mark.parametrize(
    "bos", [struct.pack("<I", 8) + text("x"), struct.pack("<If", 6, 0.5), struct.pack("<Iq", 11, -5)]
)
def test_token_ids_of_other_types_are_left_out(tmp_path, bos):
    file = tmp_path / "m.gguf"
    file.write_bytes(gguf_with(WORDS, TEMPLATE, BOS + bos))
    template = load_chat_template(file)
    assert (template.source, template.tokens) == ("{{ x }}", {})


def test_pipe_in_place_of_a_template_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "chat_template.jinja")
    with pytest.raises(UsageError, match="not a regular file"):
        load_chat_template(tmp_path / "chat_template.jinja")


TOML = {
    "deep-list": "a = " + "[" * 100_000,
    "deep-table": "a = " + "{b=" * 100_000,
    "deep-closed": "a = " + "[" * 300 + "]" * 300,
    "dotted": "a." * 100_000 + "b = 1",
    "many-dotted": "".join(f"k{number}" + ".a" * 998 + " = 1\n" for number in range(490)),
    "many-headers": "".join(f"[k{number}" + ".a" * 998 + "]\n" for number in range(490)),
    "many-inline": "".join(f"k{number} = {{ a" + ".a" * 998 + " = 1 }\n" for number in range(490)),
    "header": "[" + "a." * 100_000 + "b]\n",
    "large": "a = '" + "x" * 2_000_000 + "'",
    "number": "a = " + "1" * 10_000,
    "invalid": "a = \x00",
}


@pytest.mark.parametrize("name", TOML)
def test_hostile_toml_gives_one_error(tmp_path, name):
    file = tmp_path / "x.toml"
    file.write_text(TOML[name], encoding="utf-8")
    with pytest.raises(ValueError, match=r"nested too|nested more|maximum|Invalid|limit|Illegal|Unclosed|Expected"):
        parse_toml(TOML[name])
    for read in (read_scenarios, load_profile, lambda path: read_config(tmp_path / "w", path)):
        with pytest.raises(UsageError) as caught:
            read(file)
        assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize(
    "data",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "[],",
        "[" + "[]," * 2_000_000 + "1]",
        "[" * 200 + "]" * 200,
        "1" * 9_999,
        "\x00",
    ],
    ids=range(7),
)
def test_hostile_json_gives_one_error(tmp_path, data):
    for value in (data, data.encode()):
        with pytest.raises(ValueError):  # noqa: PT011 - of any kind
            parse_json(value)
    (tmp_path / "mcp.json").write_text(data)
    with pytest.raises(UsageError):
        parse_servers(str(tmp_path / "mcp.json"))


def test_tables_with_repeated_columns_are_rejected(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    from adapter.integrations.batch.arrow import build_empty_table, iter_batches

    for rows in (1, 0):
        table = pa.Table.from_arrays([pa.array(["x"] * rows)] * 2, names=["text", "text"])
        pq.write_table(table, tmp_path / "t.parquet")
        with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        for name in ("t.parquet", "t.arrow"):
            with pytest.raises(UsageError, match="more than one column 'text'"):
                _ = [list(iter_batches(tmp_path / name)), build_empty_table(tmp_path / name)]


def _nulls(pa):
    count = (1 << 31) - 2
    return pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), pa.nulls(count))


def _nested_nulls(pa):
    return pa.StructArray.from_arrays([_nulls(pa)], names=["a"])


TABLES = {
    "list of nulls, 16 GB": ("t.arrow", _nulls),
    "struct of nulls": ("t.arrow", _nested_nulls),
    "one text for all rows": (
        "t.arrow",
        lambda pa: pa.DictionaryArray.from_arrays(pa.array([0] * 5_000), pa.array(["x" * (10 << 20)])),
    ),
    "packed text": (
        "t.parquet",
        lambda pa: pa.DictionaryArray.from_arrays(pa.array([0] * 500), pa.array(["x" * (3 << 20)])),
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_that_expand_to_gigabytes_give_one_error(tmp_path, name):
    """A few kilobytes each, which the decoder expands in its own process."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    from adapter.integrations.batch.arrow import iter_batches

    file, build = TABLES[name]
    table = pa.table({"text": build(pa)})
    if file.endswith(".parquet"):
        pq.write_table(table, tmp_path / file, store_schema=False)
    else:
        with pa.OSFile(str(tmp_path / file), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    with pytest.raises(UsageError, match=r"needs too much memory|more than 64 MB"):
        list(iter_batches(tmp_path / file))


# ---------------------------------------------------------------------- pages

HOSTILE = {
    "tags": "<a ",
    "attributes": "<a b='",
    "double": '<a b="',
    "comments": "<!--",
    "declarations": "<!",
    "instructions": "<?",
    "sections": "<![CDATA[",
    "closers": "</",
    "open": "<b>",
    "scripts": "<script>",
    "references": "&#",
    "equals": "<a =",
    "mixed": "<a '\"<b \"'",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_pages_are_split_in_linear_time(name):
    """The number of steps, counted by the characters that all tokens and searches cover, grows like the page."""
    unit = HOSTILE[name]

    def steps(times: int) -> int:
        return sum(1 for _ in html_text.split_tokens(unit * times))

    assert steps(4_000) <= 4 * steps(1_000) + 8


@pytest.mark.parametrize("name", ["tags", "comments", "double"])
@pytest.mark.parametrize("format", ["markdown", "text"])
def test_hostile_pages_are_converted_within_their_time(name, format):
    """60 KB of ``<a `` took twenty seconds."""
    page = f"<p>before</p>{HOSTILE[name] * 20_000}"
    result = run_bounded(html_text.__file__, page.encode(), format, seconds=4.0, wall_seconds=60.0)
    assert result.stop_reason == ""
    assert "before" in result.values[0][0]


@pytest.mark.parametrize(
    ("page", "markdown"),
    [
        ("<p>1 < 2 & 3 <3</p>", "1 < 2 & 3 <3\n"),
        ("<p>a<!-- b -->c<script>if (1<2) '</p>'</script>d", "acd\n"),
        ("<P CLASS='x'>A<BR>b</P><ul><li>c</ul>", "A\nb\n\n* c\n"),
        ("<a href=\"/a?b='c'&amp;d\" title='x>y'>z</a>", "[z](/a?b='c'&d \"x>y\")\n"),
        ("<p>&lt;b&gt; &eacute;</p><svg><p>hidden</p></svg>", "<b> é\n"),
        ("<img src=a.png alt=x><hr/>end", "![x](a.png)\n\n---\n\nend\n"),
    ],
)
def test_pages_are_converted(page, markdown):
    assert convert_html(page, "markdown")[0].replace("  \n", "\n") == markdown


# ---------------------------------------------------------------------- worker

JOBS = {
    "memory": ("yield len('x' * (2 << 30))", "it needs too much memory"),
    "time": ("\n    while True: pass\n    yield 1", "it takes more than 1 s"),
    "depth": ("yield run(data)\n    f = lambda: f()\n    f()", "it is nested too deeply"),
    "error": ("raise KeyError('x')\n    yield 1", "KeyError: 'x'"),
    "exit": ("raise SystemExit(3)\n    yield 1", "SystemExit: 3"),
    "output": ("yield from ['x' * 1_000_000] * 100", "it has more than 64 MB of text"),
    "crash": ("import os; os.kill(os.getpid(), 9)\n    yield 1", "it takes more than 1 s"),
}


@pytest.mark.parametrize("name", JOBS)
def test_jobs_end_within_their_limits(tmp_path, name):
    code, end = JOBS[name]
    if name == "depth":
        code = "yield 1\n    f = lambda: f()\n    f()"
    (tmp_path / "job.py").write_text(f"def run(data):\n    {code}\n")
    result = run_bounded(str(tmp_path / "job.py"), b"", seconds=1.0, wall_seconds=60.0)
    assert result.stop_reason == end


STREAMED = {
    "memory": ("yield b'x'\n    'x' * (2 << 30)", "it needs too much memory"),
    "time": ("yield b'x'\n    while True: pass", "it takes more than 1 s"),
    "error": ("yield b'x'\n    raise KeyError('x')", "KeyError: 'x'"),
    "crash": ("yield b'x'\n    import os; os.kill(os.getpid(), 11)", "its parser crashed"),
    "cut off": ("yield b'x'\n    import os; os.write(1, b'9\\nab'); os._exit(0)", "its parser crashed"),
}


@pytest.mark.parametrize("name", STREAMED)
def test_streamed_jobs_end_within_their_limits(tmp_path, name):
    """The values that arrived before are used."""
    code, end = STREAMED[name]
    (tmp_path / "job.py").write_text(f"def run(data):\n    {code}\n")
    stream = stream_bounded(str(tmp_path / "job.py"), seconds=1.0)
    assert next(stream) == b"x"
    with pytest.raises(JobError) as caught:
        next(stream)
    assert str(caught.value) == end


def test_streamed_job_ends_with_its_reader(tmp_path):
    (tmp_path / "job.py").write_text(
        "import os\ndef run(data):\n    yield b'%d' % os.getpid()\n    while True: yield b'x' * 100_000\n"
    )
    values = stream_bounded(str(tmp_path / "job.py"), seconds=60.0)
    pid = int(next(values))
    values.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_job_has_no_keys_and_no_package(tmp_path, monkeypatch):
    """It gets neither the environment, nor modules of the folder in which the program runs."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    (tmp_path / "json.py").write_text("raise SystemExit('planted')")
    monkeypatch.chdir(tmp_path)
    Path("job.py").write_text("import os\ndef run(data):\n    yield os.environ.get('OPENAI_API_KEY', '')\n")
    assert run_bounded(str(tmp_path / "job.py"), b"", seconds=5.0).values == ("",)
    assert json.__file__ != str(tmp_path / "json.py")
