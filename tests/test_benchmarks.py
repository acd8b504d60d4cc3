"""The benchmarks run: their inputs are reproducible, and their checks hold for the first inputs."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from adapter.parsing.formats import FORMATS
from adapter.parsing.parser import parse
from benchmarks import bench_serve, fuzz_parse, prompt_cache, written_texts
from benchmarks.bench_parse import TOOLS, file_call, repair_texts
from benchmarks.fuzz_parse import Failure, Input, make, run_range, shorten_input


def test_the_first_generated_inputs_hold():
    """For a hundred inputs, nothing raises or is lost, splits do not matter, and every encoded call is parsed."""
    report = run_range(1, 0, 100)
    assert report.done == 100
    assert [failure for failure in report.failures if failure.claim not in ("slow", "cut")] == []


def test_an_input_is_made_again_by_its_number():
    """So that a reported failure can be repeated."""
    made = [make(7, index)[0] for index in range(200)]
    assert made == [make(7, index)[0] for index in range(200)]
    assert {given.kind for given in made} >= {"recorded", "soup", "encoded", "damaged", "characters"}


def test_a_failure_is_made_short(monkeypatch):
    """Without the parts that the failure does not need."""
    monkeypatch.setattr(
        fuzz_parse, "claim_broken", lambda given: "lost" if "<b>" in given.text and "x" in given.text else None
    )
    given = Input("a long text with <b> and then some x in it, " * 3, None)
    found = shorten_input(Failure(1, "lost", "", given))
    assert sorted(found.text) == sorted("<b>x")
    assert shorten_input(Failure(1, "split", "", replace(given, text="y"))).text == "y"


def test_benchmark_inputs_are_parsed():
    """Every format parses its benchmark file, and every malformed call gives the arguments of the correct one."""
    for name in FORMATS:
        (call,) = parse(file_call(name, 500), TOOLS, name, generation_prompt="").calls
        assert len(call.arguments["content"]) == 500
    content, texts = repair_texts(3_000)
    for label, text in texts.items():
        assert [call.arguments["content"] for call in parse(text, TOOLS).calls] == [content], label


@pytest.mark.parametrize("name", FORMATS)
def test_written_texts_hold_the_calls_that_they_seem_to(name):
    """The benchmark's parse of texts as models write them is right in every format."""
    for told in (name, None):
        turn = parse(written_texts.answer(name), written_texts.TOOLS, told, generation_prompt="")
        assert [call.name for call in turn.calls] == ["apply_edit"]
        (call,) = parse(written_texts.file_call(name, 3_000), written_texts.TOOLS, told, generation_prompt="").calls
        assert call.arguments == {"path": "src/app.py", "content": written_texts.source(3_000)}
    assert parse(written_texts.markdown(20_000), written_texts.TOOLS, name, generation_prompt="").calls == ()


def test_written_texts_come_again_by_their_seed():
    """The same seed gives the same texts, and 200 small calls are 200."""
    assert written_texts.markdown(5_000, 7) == written_texts.markdown(5_000, 7) != written_texts.markdown(5_000, 8)
    assert len(parse(written_texts.small_calls(200), written_texts.TOOLS).calls) == 200


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="asks Linux what processes used")
def test_streams_under_load_are_neither_lost_nor_crossed(capsys):
    """Some slow, some fast, through our server and the compared relays."""
    pytest.importorskip("aiohttp", reason="needs the server: pip install 'toolcall-adapter[server]'")
    missed = asyncio.run(bench_serve.measure([8], rate=100, seconds=0.2, burst=24, repeats=1))
    assert [line for line in missed if "lost or crossed" in line] == []
    assert len(capsys.readouterr().out.splitlines()) == 1 + 4 * 2


def test_server_reuses_its_own_text(random_gguf):
    """Over four turns on a real llama.cpp, past calls and the tools are not processed again."""
    pytest.importorskip("xllamacpp", reason="needs the embedded engine: pip install 'toolcall-adapter[embedded]'")
    rows = {way.name: prompt_cache.measure(random_gguf, 4, way, prompt_cache.DENSE) for way in prompt_cache.WAYS}
    ours, encoded = rows["ours"], rows["ours, calls encoded"]
    first, anew = rows["plain, tools first"], rows["plain, tools anew"]
    assert ours.calls == anew.calls == 4
    assert ours.later < encoded.later
    assert ours.later < first.later
    assert ours.later < anew.later / 3
    assert rows["own prompt"].later < rows["own prompt, calls encoded"].later
