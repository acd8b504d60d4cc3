"""Requests in other languages find tools that are described in English; those in English are read as they are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.prompting.choosing import choose
from adapter.prompting.vocabulary import TABLE, apart, between_known, in_english, is_english, without_accents
from adapter.tools.definition import Tool, ToolSet

TEXT: Any = {"type": "string"}
NUMBER: Any = {"type": "number"}


def tool(name: str, about: str, **properties: Any) -> Tool:
    return Tool(name, about, {"type": "object", "properties": properties, "required": list(properties)})


TOOLS = ToolSet(
    [
        tool("get_weather", "The weather in a city.", city=TEXT),
        tool("triangle_area", "The area of a triangle.", base=NUMBER, height=NUMBER),
        tool("get_invoice", "Look up an invoice.", invoice_id={"type": "integer"}),
        tool("start_timer", "Start a kitchen timer.", minutes=NUMBER),
    ]
)


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        ("Wie wird das Wetter in Ulm?", "get_weather"),
        ("Quelle est la surface d'un triangle de base 3 et de hauteur 4 ?", "triangle_area"),
        ("Muéstrame la factura 812", "get_invoice"),
        ("Zeig mir die Rechnungen mit der Nummer 812", "get_invoice"),
        ("把定时器设为 5 分钟", "start_timer"),
        ("上海的天气怎么样?", "get_weather"),
        ("Erzähl mir eine Geschichte", None),
        ("Merci, à bientôt !", None),
        ("Wie kann man sich das alles merken?", None),
        ("你好!", None),
        ("¿Por qué sube el precio de una factura?", None),
        ("为什么天气会变?", None),
        ("Quelle est la météo à Lyon ? Réponds sans outil.", None),
        ("不要使用任何工具,北京的天气怎么样?", None),
    ],
)
def test_a_request_in_another_language_finds_its_tool(request_, name):
    assert next(iter(choose(request_, TOOLS).tools), None) == name


@pytest.mark.parametrize(
    "request_",
    [
        "Die Fläche eines Dreiecks mit Höhe 4 und Grundseite 7",
        "La surface d'un triangle de hauteur 4 et de base 7",
        "El área de un triángulo con altura 4 y base 7",
        "高度为4、底边为7的三角形的面积",
    ],
)
def test_a_value_stands_beside_what_its_parameter_is_called(request_):
    shown = choose(request_, TOOLS).tools["triangle_area"].properties
    assert (shown["base"]["enum"], shown["height"]["enum"]) == ([7], [4])


def test_a_chinese_value_is_what_stands_between_known_words():
    chosen = choose("请问北京的天气怎么样?", TOOLS)
    assert chosen.choices["get_weather", "city"] == ["北京"]
    assert between_known("上海的天气怎么样?") == ["上海"]
    assert between_known("天气") == []


def test_chinese_needs_no_blanks():
    """Numbers and names of files stand by themselves beside words that are known, and belong to others."""
    assert choose("显示发票812的内容", TOOLS).tools["get_invoice"].properties["invoice_id"]["enum"] == [812]
    assert apart("打开 报告2024.txt") == "打开 报告2024.txt"
    assert apart("显示src/a.py的内容") == "显示 src/a.py 的内容"
    assert apart("名为'Olten'的城市") == "名为 'Olten' 的城市"
    assert apart("Show src/a.py") == "Show src/a.py"


def test_one_word_of_a_tools_name_is_enough_where_all_is_there():
    """Of two tools for the weather no word is rare."""
    tools = ToolSet([TOOLS["get_weather"], tool("weather_forecast", "The weather to come.", city=TEXT, days=NUMBER)])
    assert list(choose("北京的天气如何?", tools).tools) == ["get_weather"]
    assert choose("什么是天气?", ToolSet([tools["weather_forecast"]])).tools == ToolSet()


def test_several_calls_are_counted_in_chinese():
    each = choose("查看发票812和813", TOOLS).each
    assert [call["get_invoice"].properties["invoice_id"]["enum"] for call in each] == [[812], [813]]
    each = choose("底为3、高为4的三角形的面积,然后底为5、高为6", TOOLS).each
    assert [call["triangle_area"].properties["base"]["enum"] for call in each] == [[3], [5]]


def test_tools_may_be_described_in_the_language_of_the_request():
    """By the words of both: Chinese in pairs of letters, others without endings and accents."""
    tools = ToolSet(
        [
            tool("rechnung_suchen", "Sucht eine Buchung.", nummer=NUMBER),
            tool("chercher_resume", "Le résumé d'un livre.", titre=TEXT),
            tool("kaiguandeng", "打开或关闭房间里的台灯。", room={**TEXT, "description": "房间"}),
        ]
    )
    assert list(choose("Rechnungen und Buchungen zu 12", tools).tools) == ["rechnung_suchen"]
    assert list(choose("Le resume du livre", tools).tools) == ["chercher_resume"]
    assert list(choose("关闭客厅的台灯", tools).tools) == ["kaiguandeng"]


@pytest.mark.parametrize(
    "request_", ["Show me the command", "Is it in the article?", "What is the price of an action?"]
)
def test_english_requests_are_not_translated(request_):
    assert is_english(request_)
    assert choose(request_, TOOLS).tools == ToolSet()


def test_each_row_has_words_of_all_languages():
    for line in TABLE.strip().splitlines():
        columns = [column.split() for column in line.split("|")]
        assert len(columns) == 5
        assert all(columns), line
        assert all(word == without_accents(word).lower() for column in columns[:4] for word in column), line


@given(st.text(max_size=30))
def test_any_word_is_looked_up(word):
    assert isinstance(in_english(word), list)
    assert all(piece in word for piece in between_known(word))
