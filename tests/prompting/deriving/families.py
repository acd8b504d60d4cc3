"""Chat templates of invented families, each with its own notation of calls."""

from __future__ import annotations

from adapter.prompting.chat_template import ChatTemplate, ChatTemplateError, render_chat_template

_TALK = """\
{%- if tools %}[:sys:]{% for tool in tools %}{{ tool | tojson }}
{% endfor %}[:end:]
{% endif %}
{%- for message in messages %}[:{{ message.role }}:]
{%- if message.role == 'tool' %}<out>{{ message.content }}</out>
{%- else %}
{%- if message.reasoning_content %}<muse>{{ message.reasoning_content }}</muse>{% endif %}{{ message.content or '' }}
{%- if message.tool_calls %}CALLS{% endif %}
{%- endif %}<|stop|>
{% endfor %}
{%- if add_generation_prompt %}[:assistant:]{% endif %}"""


def family(calls: str) -> str:
    """``calls``: the text of a message's ``tool_calls``."""
    return _TALK.replace("[:", "<|").replace(":]", "|>").replace("CALLS", calls)


def each(call: str, between: str = "") -> str:
    """``call``, in which ``f`` is the function, for each of the calls."""
    return (
        "{% for call in message.tool_calls %}{% set f = call.function %}"
        + call
        + (f"{{% if not loop.last %}}{{{{ {between!r} }}}}{{% endif %}}" if between else "")
        + "{% endfor %}"
    )


LINE = "{{ '\\n' }}"

OBJECT = '{"name": "{{ f.name }}", "arguments": {{ f.arguments | tojson }}}'
OTHER_KEYS = OBJECT.replace("name", "tool_name", 1).replace("arguments", "inputs", 1)
NAME_AS_KEY = "{{ '{' }}{{ f.name | tojson }}: {{ f.arguments | tojson }}}"
_EACH = "{% for k, v in f.arguments.items() %}"
_VALUE = "{{ v if v is string else v | tojson }}"

KNOWN_FORMS = {
    "an object in tags": family(each(f"<<do>>{OBJECT}<</do>>")),
    "an object in lines of their own": family(LINE + each(f"<do|>\n{OBJECT}\n<|do>", "\n")),
    "a list in a section": family(f"<|plan|>[{each(OBJECT, ', ')}]<|/plan|>"),
    "other keys": family(f"<|plan|>[{each(OTHER_KEYS, ', ')}]<|/plan|>"),
    "an id beside the name": family(each('<|do|>{"id": "{{ call.id }}", ' + OBJECT[1:] + "<|/do|>")),
    "arguments as a text": family(
        each('<|do|>{"name": "{{ f.name }}", "arguments": {{ f.arguments | tojson | tojson }}}<|/do|>')
    ),
    "the name as the key": family(f"<|plan|>[{each(NAME_AS_KEY, ', ')}]<|/plan|>"),
    "nothing closes it": family(each(f"<|do|>{OBJECT}")),
    "a bare object": family(LINE + each(OBJECT, "\n")),
    "the name before the object": family(each("<|do|>{{ f.name }}<|with|>{{ f.arguments | tojson }}<|/do|>")),
    "the name before the object, in a section": family(
        "<|plan|>" + each("<|do|>{{ f.name }}<|with|>{{ f.arguments | tojson }}<|/do|>") + "<|/plan|>"
    ),
    "the name, an id and the object": family(
        each("[DO]{{ f.name }}[ID]{{ call.id }}[WITH]{{ f.arguments | tojson }}")
    ),
    "labels": family(LINE + each("Tool: {{ f.name }}\nTool Input: {{ f.arguments | tojson }}", "\n")),
    "functions": family(
        each(
            "<do:it>\n<function={{ f.name }}>\n{% for k, v in f.arguments.items() %}<parameter={{ k }}>"
            + _VALUE
            + "</parameter>\n{% endfor %}</function>\n</do:it>"
        )
    ),
    "keys and values": family(
        each(
            "<do>{{ f.name }}\n{% for k, v in f.arguments.items() %}<k>{{ k }}</k>\n<v>"
            + _VALUE
            + "</v>\n{% endfor %}</do>",
            "\n",
        )
    ),
    "keys and values without line breaks": family(
        "<|plan|>" + each(
            "<|do|>{{ f.name }}" + _EACH + "<|k|>{{ k }}<|v|>" + _VALUE + "<|/v|>{% endfor %}<|/do|>"
        ) + "<|/plan|>"
    ),
    "elements": family(
        "<plan>\n"
        + each(
            '<do tool="{{ f.name }}">\n{% for k, v in f.arguments.items() %}<with key="{{ k }}">'
            + _VALUE
            + "</with>\n{% endfor %}</do>\n"
        )
        + "</plan>"
    ),
    "Python": family(
        "<|run|>[" + each(
            "{{ f.name }}(" + _EACH + "{{ k }}={{ v | tojson }}{% if not loop.last %}, {% endif %}{% endfor %})",
            ", ",
        ) + "]<|/run|>"
    ),
    "elements named after the keys": family(
        each("<do>\n<tool>{{ f.name }}</tool>\n" + _EACH + "<{{ k }}>" + _VALUE + "</{{ k }}>\n{% endfor %}</do>", "\n")
    ),
}  # fmt: skip
"""Layouts for which a parser can be derived."""

NESTED_BRACKETS = family(
    each("[[call {{ f.name }}{% for k, v in f.arguments.items() %} [[{{ k }} = " + _VALUE + "]]{% endfor %}]]")
)
ATTRIBUTES = family(
    each('<call fn="{{ f.name }}"{% for k, v in f.arguments.items() %} {{ k }}="' + _VALUE + '"{% endfor %}/>')
)
YAML = family(
    LINE + each("---\ntool: {{ f.name }}\nwith:\n" + _EACH + "  {{ k }}: " + _VALUE + "\n{% endfor %}...\n")
)  # fmt: skip
ONE_VALUE_A_LINE = family(
    LINE + each("<<call {{ f.name }}>>\n" + _EACH + "{{ k }}: " + _VALUE + "\n{% endfor %}<</call>>", "\n")
)
ODD = {"nested brackets": NESTED_BRACKETS, "attributes": ATTRIBUTES, "YAML": YAML}
"""Layouts for which no parser can be derived."""


def fill_of(source: str):
    """Fills ``source`` in this process."""
    template = ChatTemplate(source, {"bos_token": "<zqbos>", "eos_token": "<zqeos>"})

    def fill(messages, tools, opened):
        try:
            return render_chat_template(template, messages, tools, add_generation_prompt=opened)
        except ChatTemplateError:
            return None

    return fill
