"""Template capabilities are found by probing."""

import pytest

from adapter.backends.prompt_discovery import probe_capabilities
from adapter.prompting.chat_template import ChatTemplate, ChatTemplateError, render_chat_template
from adapter.prompting.template_capabilities import TemplateCapabilities
from tests.template_server import CHATML, TOOLLESS


def traits_of(source) -> TemplateCapabilities | None:
    def fill(messages, tools):
        try:
            return render_chat_template(ChatTemplate(source), messages, tools)
        except ChatTemplateError:
            return None

    return probe_capabilities(fill)


def test_probe_of_a_full_template():
    """It has no limitations."""
    prompt = "<|im_end|>\n<|im_start|>assistant\n"
    assert traits_of(CHATML) == TemplateCapabilities(
        as_text=True, generation_prompt=prompt, closers=("</tool_response>",)
    )


def test_probe_of_a_template_without_tools():
    """Or without their results."""
    assert traits_of(TOOLLESS) is None
    assert traits_of("{{ raise_exception('never') }}") is None


def test_probe_of_a_template_that_drops_calls():
    """Calls must be text, as for Granite and LFM2."""
    traits = traits_of("{{ tools }}" + TOOLLESS)
    assert traits is not None
    assert traits.only_text


def changed(old: str, new: str) -> str:
    assert old in CHATML
    return CHATML.replace(old, new)


CALL = "{%- for call in message.tool_calls or [] %}"
REFUSE = "{% if X %}{{ raise_exception('no') }}{% endif %}"
STRICT = (
    "{% set ns = namespace(before='') %}{% for m in messages %}"
    "{% if m.role == 'user' and ns.before in ('user', 'tool') %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}{% set ns.before = m.role %}{% endfor %}"
)


@pytest.mark.parametrize(
    ("source", "trait", "value"),
    [
        (changed("call.function.arguments | tojson", "'' + call.function.arguments"), "arguments", "text"),
        (changed("message.content or ''", "message['content'].strip()"), "empty_content", ""),
        (changed(CALL, CALL + REFUSE.replace("X", "call.id | length != 9")), "ids", "nine"),
        (changed('"name": "{{ call.function.name }}"', '"id": "{{ call.id }}"'), "ids", "named"),
        (changed(CALL, REFUSE.replace("X", "message.tool_calls | length > 1") + CALL), "parallel_calls", False),
        (changed("message.role != 'system' or not loop.first", "message.role != 'system'"), "system", "first"),
        (REFUSE.replace("X", "messages[0].role == 'system'") + CHATML, "system", "none"),
        (STRICT + CHATML, "users", False),
        (STRICT + CHATML, "between", ""),
        (
            changed(
                "<|im_start|>{{ message.role }}", "<|im_start|>{{ 'caller' if message.tool_calls else message.role }}"
            ),
            "as_text",
            False,
        ),
    ],
)
def test_probe_detects_each_limitation(source, trait, value):
    """Each in an otherwise identical template."""
    traits = traits_of(source)
    assert traits is not None
    assert getattr(traits, trait) == value
