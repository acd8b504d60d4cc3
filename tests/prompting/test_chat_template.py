"""Templates are rendered like by Hugging Face, and can do nothing else."""

import json
import signal
import sys
import threading
from pathlib import Path
from unittest.mock import ANY

import pytest

from adapter.backends.template_files import TemplateWorker
from adapter.prompting.chat_template import ChatTemplate, ChatTemplateError, answer_request, render_chat_template

HELLO = [{"role": "user", "content": "Hello"}]


def filled(source, messages=HELLO, tools=None, **more):
    return render_chat_template(ChatTemplate(source, {"bos_token": "<s>"}), messages, tools, **more)


@pytest.mark.parametrize(
    ("source", "prompt"),
    [
        ("{{ bos_token }}{{ messages[0].content }}", "<s>Hello"),
        ("  {% if true %}\na\n  {% endif %}\nb", "a\nb"),
        ("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "01"),
        ('{{ {"b": "<é> & \'", "a": 1} | tojson }}', '{"b": "<é> & \'", "a": 1}'),
        ('{{ {"a": [1]} | tojson(indent=2) }}', '{\n  "a": [\n    1\n  ]\n}'),
        ("{% generation %}said{% endgeneration %}.", "said."),
        ("{{ strftime_now('%Y')[:2] }}", "20"),
        ("{% set ns = namespace(a=1) %}{% for i in [2] %}{% set ns.a = i %}{% endfor %}{{ ns.a }}", "2"),
        ("{{ tools is none }} {{ add_generation_prompt }}", "True True"),
    ],
    ids=["tokens", "white space", "loop controls", "json", "indented json", "generation", "date", "namespace", "given"],
)
def test_template_context_is_that_of_transformers(source, prompt):
    """As documented and implemented by transformers."""
    assert filled(source) == prompt


def test_null_is_dropped_and_reasoning_has_both_keys():
    """`content: null` of OpenAI's interface would be shown as None."""
    message = {"role": "assistant", "content": None, "reasoning_content": "why"}
    assert filled("{{ messages[0].content is defined }} {{ messages[0].thinking }}", [message]) == "False why"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{% if %}", "line 1 of the template"),
        ("{{ missing.attribute }}", "'missing' is undefined"),
        ("{{ 'a' + 1 }}", "TypeError"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "calls itself"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ messages.append(1) }}", "unsafe"),
        ("{{ namespace(_x=1) }}", "underscore"),
        ("{{ dict.mro() }}", "no attribute 'mro'"),
        ("{{ namespace.__init__.__globals__ }}", "unsafe"),
        ("{% include 'other' %}", "no loader"),
    ],
)
def test_template_sandbox_rejects_unsafe_access(source, said):
    """Rejections, invalid templates and access to Python raise with the reason."""
    with pytest.raises(ChatTemplateError, match=said):
        filled(source)


def test_prompt_size_is_limited():
    """A longer prompt fits no model."""
    row = "{% for i in range(9999) %}" * 2 + "x" * 900 + "{% endfor %}" * 2
    with pytest.raises(ChatTemplateError, match="exceeds 32,000,000 characters"):
        filled(row)


@pytest.mark.parametrize(
    "source",
    [
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "{% set ns = namespace(x=[0]) %}{% for i in range(90) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}"
        "{{ ns.x | tojson | length }}",
    ],
    ids=["loops", "doubles"],
)
def test_endless_template_is_stopped(source):
    """Its process is killed; the next prompt starts a new one."""
    with TemplateWorker(ChatTemplate(source), time_limit_s=0.3) as process:
        with pytest.raises(
            ChatTemplateError, match=r"the template (was stopped, because it took|takes) (more than|too much)"
        ):
            process.render(HELLO)
        process.template = ChatTemplate("fine")
        process._time_limit_s = 60.0
        assert process.render(HELLO) == "fine"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has the clock alone")
def test_busy_machine_gets_more_wall_clock_time():
    """A model may use all cores."""
    with TemplateWorker(ChatTemplate("ok"), time_limit_s=1.0) as process:
        assert process.render(HELLO) == "ok"
        assert process._process is not None
        process._process.send_signal(signal.SIGSTOP)
        threading.Timer(1.5, process._process.send_signal, [signal.SIGCONT]).start()
        assert process.render(HELLO) == "ok"
        assert 0 < process.spent_s < 1.0


def test_template_that_exhausts_memory_is_stopped():
    """The process has a memory limit."""
    process = TemplateWorker(ChatTemplate("{{ 'x' * 10 ** 10 }}"), time_limit_s=60.0)
    with process, pytest.raises(ChatTemplateError, match=r"memory|MB"):
        process.render(HELLO)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the environment of a process")
def test_template_process_has_no_access_to_our_environment(monkeypatch):
    """It has only the environment variables that Python requires."""
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-ours")
    with TemplateWorker(ChatTemplate("ok"), time_limit_s=60.0) as process:
        assert process.render(HELLO) == "ok"
        assert process._process is not None
        assert b"a-key-of-ours" not in Path(f"/proc/{process._process.pid}/environ").read_bytes()


def test_template_program_answers_line_by_line():
    """The program's protocol."""
    asked = '{"source": "{{ messages[0].content }}", "tokens": {}, "messages": [{"content": "a\\nb"}], "tools": [], '
    said = json.loads(answer_request(asked + '"variables": {}, "add_generation_prompt": true}'))
    assert said == {"prompt": "a\nb", "spent_s": ANY}
    assert said["spent_s"] > 0
