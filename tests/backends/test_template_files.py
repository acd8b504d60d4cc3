"""Templates are loaded from every kind of file."""

import json

import pytest

from adapter.backends.template_files import load_chat_template
from adapter.core.errors import UsageError
from adapter.prompting.chat_template import ChatTemplate
from tests.engines import write_random_gguf

SETTINGS = {"chat_template": "{{ x }}", "bos_token": "<s>", "eos_token": {"content": "</s>"}, "pad_token": None}
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


def test_load_template_from_jinja_file(tmp_path):
    """It is loaded unchanged."""
    (tmp_path / "mine.jinja").write_text("{{ é }}", encoding="utf-8")
    assert load_chat_template(tmp_path / "mine.jinja") == ChatTemplate("{{ é }}")


def test_load_template_from_tokenizer_config(tmp_path):
    """With its tokens; the template for tools is selected from several."""
    file = tmp_path / "tokenizer_config.json"
    file.write_text(json.dumps(SETTINGS))
    assert load_chat_template(file) == load_chat_template(tmp_path) == ChatTemplate("{{ x }}", TOKENS)
    several = [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]
    file.write_text(json.dumps({**SETTINGS, "chat_template": several}))
    assert load_chat_template(tmp_path).source == "t"


def test_load_template_prefers_the_jinja_file_of_a_folder(tmp_path):
    """The separate file has priority."""
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(SETTINGS))
    (tmp_path / "chat_template.jinja").write_text("own")
    assert load_chat_template(tmp_path) == ChatTemplate("own", TOKENS)


def test_load_template_from_gguf(random_gguf):
    """Tokens are resolved to their texts."""
    template = load_chat_template(random_gguf)
    assert template.source.startswith("{% for m in messages %}")
    assert template.tokens == TOKENS


def test_loaded_template_has_control_tokens(tmp_path):
    """By token type in GGUF, and by the special flag in a tokenizer's settings."""
    gguf = write_random_gguf(tmp_path / "a.gguf", own_tokens=["<tool_x>"], control_tokens=["<turn_of>"])
    assert load_chat_template(gguf).control_tokens == ("<s>", "</s>", "<tool_x>", "<turn_of>")
    added = {"1": {"content": "<turn_of>", "special": True}, "2": {"content": "<b>", "special": False}, "3": "bad"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({**SETTINGS, "added_tokens_decoder": added}))
    assert load_chat_template(tmp_path).control_tokens == ("<turn_of>",)
    (tmp_path / "chat_template.jinja").write_text("own")
    assert load_chat_template(tmp_path).control_tokens == ("<turn_of>",)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.gguf", b"GGUF\x03"),
        ("a.gguf", b"GGUF" + b"\xff" * 40),
        ("a.json", b"{}"),
        ("a.json", b"no"),
        ("a.jinja", b"\xff"),
    ],
)
def test_file_without_a_template_raises(tmp_path, name, content):
    """The error lists the accepted files."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=r"has no chat template .*expected a Jinja file"):
        load_chat_template(tmp_path / name)


def test_missing_template_file_raises(tmp_path):
    """For both files and folders."""
    with pytest.raises(UsageError, match="No such file"):
        load_chat_template(tmp_path / "none")
    with pytest.raises(UsageError, match=r"has neither chat_template\.jinja nor"):
        load_chat_template(tmp_path)
