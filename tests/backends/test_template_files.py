"""A template is found in whatever holds one."""

import json

import pytest

from adapter.backends.template_files import load_chat_template
from adapter.core.errors import UsageError
from adapter.prompting.chat_template import ChatTemplate
from tests.engines import write_random_gguf

SETTINGS = {"chat_template": "{{ x }}", "bos_token": "<s>", "eos_token": {"content": "</s>"}, "pad_token": None}
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


def test_a_file_of_jinja(tmp_path):
    """As it stands."""
    (tmp_path / "mine.jinja").write_text("{{ é }}", encoding="utf-8")
    assert load_chat_template(tmp_path / "mine.jinja") == ChatTemplate("{{ é }}")


def test_settings_of_a_tokenizer(tmp_path):
    """With its tokens; of several templates that for tools."""
    file = tmp_path / "tokenizer_config.json"
    file.write_text(json.dumps(SETTINGS))
    assert load_chat_template(file) == load_chat_template(tmp_path) == ChatTemplate("{{ x }}", TOKENS)
    several = [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]
    file.write_text(json.dumps({**SETTINGS, "chat_template": several}))
    assert load_chat_template(tmp_path).source == "t"


def test_a_folder_with_both(tmp_path):
    """The template's own file counts."""
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(SETTINGS))
    (tmp_path / "chat_template.jinja").write_text("own")
    assert load_chat_template(tmp_path) == ChatTemplate("own", TOKENS)


def test_a_gguf(random_gguf):
    """With the words of its tokens."""
    template = load_chat_template(random_gguf)
    assert template.source.startswith("{% for m in messages %}")
    assert template.tokens == TOKENS


def test_the_control_tokens_beside_a_template(tmp_path):
    """In a GGUF by their type; in a tokenizer's settings those that are special."""
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
def test_what_holds_none(tmp_path, name, content):
    """It is said what may be named."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=r"holds no chat template .*name a Jinja file"):
        load_chat_template(tmp_path / name)


def test_what_is_not_there(tmp_path):
    """Neither a file nor a folder with one."""
    with pytest.raises(UsageError, match="No such file"):
        load_chat_template(tmp_path / "none")
    with pytest.raises(UsageError, match=r"holds neither chat_template\.jinja nor"):
        load_chat_template(tmp_path)
