"""Parse the calls of an unknown model family, using only its chat template.

open_door {'room': 'kitchen'}
"""

from adapter import derive, parse

TEMPLATE = """{%- for message in messages %}<|{{ message.role }}|>{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}
<do>{{ call.function.name }}
{% for key, value in call.function.arguments.items() %}
<k>{{ key }}</k> <v>{{ value if value is string else value | tojson }}</v>
{% endfor %}
</do>
{%- endfor %}<|stop|>
{% endfor %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}"""

turn = parse("<do>open_door\n<k>room</k> <v>kitchen</v>\n</do>", format=derive(TEMPLATE))
for call in turn.calls:
    print(call.name, call.arguments)
