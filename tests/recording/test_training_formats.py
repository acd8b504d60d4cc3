"""Recordings as training sets: the content of samples, skipped answers with reasons, and the loss mask."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adapter.core.errors import UsageError
from adapter.protocols.recorded_exchange import RecordedExchange
from adapter.recording.training_formats import UnrepresentableSample, to_openai, to_sharegpt, to_templated_text
from adapter.recording.training_samples import (
    TrainingSample,
    find_failing_filter,
    list_exchange_samples,
    list_transcript_samples,
    parse_filters,
)
from adapter.recording.transcript import Transcript
from tests.command_line import adapter
from tests.integrations.batch.test_row_parser import CALL, TOOLS

TRANSCRIPTS = Path(__file__).parent.parent.parent / "fixtures" / "transcripts"
ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Read a.py"}]
CHATML = """{%- for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>
{{ c.function.arguments.path }}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
<think>
{% endif %}"""


def exchange(text: str = CALL, **fields) -> RecordedExchange:
    told = {"format": "hermes", "policy": "safe", "finish_reason": "stop", "tools": TOOLS, "sent": {"messages": ASKED}}
    return RecordedExchange(text=text, **{**told, **fields})


def sample(text: str = CALL, **fields) -> TrainingSample:
    (found,) = list_exchange_samples([exchange(text, **fields)])
    assert isinstance(found, TrainingSample)
    return found


def test_openai_has_the_answer_as_calls():
    """Earlier answers have weight 0. Reasoning comes from the server's field."""
    before = [*ASKED, {"role": "assistant", "content": "Sure?"}, {"role": "user", "content": "Yes."}]
    made = to_openai(sample(f"Here.\n{CALL}", reasoning="Hm.", sent={"messages": before}))
    *earlier, last = made["messages"]
    assert [message.get("weight") for message in earlier] == [None, None, 0, None]
    assert (last["role"], last["content"], last["reasoning_content"], last["weight"]) == (
        "assistant",
        "Here.",
        "Hm.",
        1,
    )
    assert last["tool_calls"][0]["function"] == {"name": "read_file", "arguments": '{"path": "a.py"}'}
    assert made["tools"] == TOOLS


def test_sharegpt_has_calls_and_results_as_turns():
    """With arguments as objects. A message with images is skipped."""
    before = [*ASKED, to_openai(sample())["messages"][-1], {"role": "tool", "content": "x = 1", "tool_call_id": "c"}]
    made = to_sharegpt(sample("It is 1.", sent={"messages": before}))
    assert [turn["from"] for turn in made["conversations"]] == [
        "system",
        "human",
        "function_call",
        "observation",
        "gpt",
    ]
    assert json.loads(made["conversations"][2]["value"]) == [{"name": "read_file", "arguments": {"path": "a.py"}}]
    parts = [{"type": "text", "text": "Which"}, {"type": "text", "text": "file?"}]
    assert to_sharegpt(sample(sent={"messages": [{"role": "user", "content": parts}]}))["conversations"][0] == {
        "from": "human",
        "value": "Which\nfile?",
    }
    with pytest.raises(UnrepresentableSample, match="images"):
        to_sharegpt(sample(sent={"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}))


@pytest.mark.parametrize("text", [CALL, "It is 1.", f"So.\n{CALL}"])
def test_the_mask_is_the_answer_with_its_end(tmp_path, text):
    """Without the role before it, an opening of reasoning in the prompt, and the line break after its last token."""
    made = exported(tmp_path, [exchange(text)], "--as", "text")[0][0]
    ((start, end),) = made["spans"]
    assert made["text"][:start].endswith("<|im_start|>assistant\n")
    assert made["text"][start:end].endswith("<|im_end|>")
    assert made["text"][end:] == "\n"
    assert ("a.py\n</tool_call>" in made["text"][start:end]) == ("<tool_call>" in text)


def test_template_that_rewrites_the_past_is_reported():
    """No mask is guessed."""

    def render(messages, tools, begins):
        return "".join(f"{len(messages)}{message['content']}" for message in messages) + ">" * begins

    with pytest.raises(UnrepresentableSample, match="differently"):
        to_templated_text(sample("x"), render)
    with pytest.raises(UnrepresentableSample, match="omits the answer"):
        to_templated_text(sample("x"), lambda messages, tools, begins: "the same")


@pytest.mark.parametrize(
    ("given", "rejected"),
    [
        ({}, ""),
        ({"text": ""}, "valid"),
        ({"text": '<tool_call>\n{"name": 5}\n</tool_call>'}, "valid"),
        ({"finish_reason": "length"}, "valid"),
        ({"finish_reason": "abandoned"}, "valid"),
        ({"asked_again": True}, "valid"),
        ({"text": CALL.replace('"}', '",}')}, "unfixed"),
        ({"text": "No."}, "calls"),
    ],
)
def test_filters_name_the_failed_condition(given, rejected):
    """With the first condition that failed."""
    assert find_failing_filter(sample(**given), parse_filters("valid, unfixed,calls")) == rejected


def test_approved_filter_rejects_samples_without_approval():
    """A server's recording has no approvals, nor does a conversation in which everything was allowed."""
    assert find_failing_filter(sample(), ["approved"]) == "approved"
    refused = Transcript.from_text((TRANSCRIPTS / "smollm2-edit-refused.jsonl").read_text(encoding="utf-8"))
    first, *_ = list_transcript_samples(refused)
    assert isinstance(first, TrainingSample)
    assert (first.refused, find_failing_filter(first, ["approved"])) == (True, "approved")
    with pytest.raises(UsageError, match="expected valid, unfixed, calls, approved, succeeded, answered"):
        parse_filters("valid,nice")


def test_export_counts_skipped_samples_by_reason(tmp_path):
    """Every answer becomes a line or is counted with a reason. Keys stay redacted."""
    given = [exchange("[redacted KEY]"), exchange(""), exchange(sent={"prompt": "x"}), exchange(finish_reason="length")]
    made, said = exported(tmp_path, given, "--only", "valid")
    assert made[0]["messages"][-1]["content"] == "[redacted KEY]"
    assert said.splitlines() == [
        "1 sample, 3 answers skipped",
        "     2  not valid",
        "     1  a text completion, without messages",
    ]


def test_shipped_transcripts_are_exported(tmp_path):
    """All their answers, in each format."""
    answers = sum(
        len(Transcript.from_text(file.read_text(encoding="utf-8")).answers) for file in TRANSCRIPTS.glob("*.jsonl")
    )
    for shape in ("openai", "sharegpt"):
        done = adapter("export", TRANSCRIPTS, "--out", "-", "--as", shape, cwd=tmp_path)
        assert len(done.stdout.splitlines()) == answers, done.stderr


def exported(folder: Path, exchanges: list[RecordedExchange], *words: str):
    """Return the samples, and the messages about the others."""
    (folder / "said.jsonl").write_text("".join(each.model_dump_json() + "\n" for each in exchanges).replace(
        '{"kind":"exchange"', '{"kind": "exchange"'))  # fmt: skip
    (folder / "chat.jinja").write_text(CHATML)
    template = ["--template", folder / "chat.jinja"] if "text" in words else []
    done = adapter("export", folder / "said.jsonl", "--out", folder / "set.jsonl", *words, *template, cwd=folder)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in (folder / "set.jsonl").read_text().splitlines()], done.stderr
