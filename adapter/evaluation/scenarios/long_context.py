"""Define scenarios with long tool results, in which only a few lines are relevant."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import ClassVar

from adapter.evaluation.scenario import (
    Check,
    ExecutedCall,
    ExpectedCall,
    Oracle,
    Scenario,
    ToolRefusal,
    missing_fact,
    tool,
)

KIND = "long context"
TEXT = (
    "the of a in and to on at by for with pump north filter report shift valve batch sample third early level crew dry "
    "line hall meter check belt late spare order tank motor cable under change test rate south press load"
)
WORDS = TEXT.split()


def make_filler(seed: int, lines: int) -> list[str]:
    """Return lines of meaningless text, each starting with a time."""
    random = Random(seed)
    return [
        f"{7 + n * 9 // lines:02}:{n * 540 // lines % 60:02} {' '.join(random.choices(WORDS, k=9))}"
        for n in range(lines)
    ]


def insert_facts(seed: int, lines: int, *facts: str) -> list[str]:
    """Return ``lines`` lines of meaningless text, with ``facts`` inserted as further lines at equal distances."""
    text = make_filler(seed, lines)
    for number, line in enumerate(facts, 1):
        text.insert(len(text) * number // (len(facts) + 1), line)
    return text


class JournalWorld:
    """A world with long daily journals, and the data of machines that they mention."""

    TOOLS: ClassVar = [
        tool("journal", "The journal of a day.", day="string Monday, Tuesday, ..."),
        tool("machine", "The data of a machine.", code="string Such as MX-12."),
    ]
    DAYS: ClassVar = {
        "Monday": insert_facts(11, 160, "11:52 machine MX-4471 stopped: bearing hot"),
        "Tuesday": insert_facts(12, 160, "09:07 machine MX-4474 stopped: no oil", "14:20 machine MX-4470 runs again"),
        "Wednesday": insert_facts(13, 160, "16:40 MX-4474 has a new seal, part GR-5583-W"),
    }
    MACHINES: ClassVar = {
        "MX-4471": "type Corvin 8, built 2019, plate 77-QD-3160",
        "MX-4474": "type Corvin 9, built 2022, plate 77-QD-8245",
    }

    def journal(self, day: str) -> str:
        if day not in self.DAYS:
            raise ToolRefusal(f"unknown day {day}; the journals are: {', '.join(self.DAYS)}")
        return "\n".join(self.DAYS[day])

    def machine(self, code: str) -> str:
        if code not in self.MACHINES:
            raise ToolRefusal(f"unknown machine {code}")
        return self.MACHINES[code]


def _find_first(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        raise ValueError(f"no {pattern} in {text[:40]!r}")
    return match[1]


def solve_stopped_on(day: str) -> Oracle:
    (journal,) = yield [ExpectedCall("journal", {"day": day})]
    (data,) = yield [ExpectedCall("machine", {"code": _find_first(r"machine (\S+) stopped", journal)})]
    plate = _find_first(r"plate (\S+)", data)
    return f"The plate of the machine that stopped is {plate}."


def solve_monday() -> Oracle:
    return (yield from solve_stopped_on("Monday"))


def solve_two_journals() -> Oracle:
    (tuesday,) = yield [ExpectedCall("journal", {"day": "Tuesday"})]
    code = _find_first(r"machine (\S+) stopped", tuesday)
    (wednesday,) = yield [ExpectedCall("journal", {"day": "Wednesday"})]
    (data,) = yield [ExpectedCall("machine", {"code": code})]
    part = _find_first(rf"{code} has a new seal, part (\S+)", wednesday)
    plate = _find_first(r"plate (\S+)", data)
    return f"It got part {part}; its plate is {plate}."


class PagedDocumentWorld:
    """A world with a document in which each page names the next page to read."""

    TOOLS: ClassVar = [tool("page", "One page of the paper.", number="integer Its number.")]
    NEXT: ClassVar = {3: 17, 17: 8, 8: 22, 22: 5}

    def page(self, number: int) -> str:
        line = f"See page {self.NEXT[number]}." if number in self.NEXT else "Nothing further."
        if number == 5:
            line = "The sum that was agreed is 30,518 crowns."
        return "\n".join(insert_facts(number, 40, line))


def solve_pages() -> Oracle:
    number = "3"
    while True:
        (text,) = yield [ExpectedCall("page", {"number": int(number)})]
        if "agreed" in text:
            crowns = _find_first(r"agreed is (\S+)", text)
            return f"They agreed on {crowns} crowns."
        number = _find_first(r"See page (\d+)", text)


class CaseDeskWorld:
    """A world in which cases are opened and copied, for a request that contains a long letter."""

    TOOLS: ClassVar = [
        tool("open_case", "Open a case.", title="string Its title.", reference="string From the letter."),
        tool("send_copy", "Send a copy of a case to an address.", case="string Its number.", to="string An address."),
    ]

    def __init__(self) -> None:
        self.cases: dict[str, tuple[str, str]] = {}
        self.sent: list[tuple[str, str]] = []

    def open_case(self, title: str, reference: str) -> str:
        number = f"case-{sum(map(ord, reference)) * 41 % 9973}"
        self.cases[number] = (title, reference)
        return number

    def send_copy(self, case: str, to: str) -> str:
        if case not in self.cases:
            raise ToolRefusal(f"unknown case {case}")
        self.sent.append((case, to))
        return "sent"


LETTER = "\n".join(insert_facts(31, 120, "Our reference: ZK/8830-f", "Copies go to registry@hollin.example"))
CASE = f"case-{sum(map(ord, 'ZK/8830-f')) * 41 % 9973}"


def solve_letter() -> Oracle:
    (number,) = yield [ExpectedCall("open_case", {"title": "Letter", "reference": "ZK/8830-f"})]
    yield [ExpectedCall("send_copy", {"case": number, "to": "registry@hollin.example"})]
    return f"The letter is {number}, and a copy was sent."


def check_letter(world: CaseDeskWorld, _executed: Sequence[ExecutedCall], answer: str) -> str:
    if [reference for _, reference in world.cases.values()] != ["ZK/8830-f"]:
        return f"the cases are {world.cases}"
    if world.sent != [(CASE, "registry@hollin.example")]:
        return f"sent was {world.sent}"
    return missing_fact(answer, [CASE])


def expect_facts(*facts: str, after: Sequence[ExpectedCall]) -> Check:
    """Return a check that the answer contains ``facts``, and that all calls in ``after`` were made."""

    def check(_world: object, executed: Sequence[ExecutedCall], answer: str) -> str:
        done = [ExpectedCall(call.name, call.arguments) for call in executed if call.ok]
        return next((f"{call} was not made" for call in after if call not in done), "") or missing_fact(answer, facts)

    return check


SCENARIOS = [
    Scenario("the machine that stopped", KIND, "Which machine stopped on Monday? Give me its plate.",
             JournalWorld.TOOLS, JournalWorld, solve_monday,
             expect_facts("77-QD-3160", after=[ExpectedCall("machine", {"code": "MX-4471"})])),
    Scenario("two journals", KIND, "A machine stopped on Tuesday. Which part did it get on Wednesday, and what is its "
             "plate?", JournalWorld.TOOLS, JournalWorld, solve_two_journals,
             expect_facts("GR-5583-W", "77-QD-8245", after=[ExpectedCall("journal", {"day": "Wednesday"}),
                                                            ExpectedCall("machine", {"code": "MX-4474"})])),
    Scenario("from page to page", KIND, "Page 3 of the paper names the page to continue with; follow them to the end. "
             "Which sum was agreed?", PagedDocumentWorld.TOOLS, PagedDocumentWorld, solve_pages,
             expect_facts("30518", after=[ExpectedCall("page", {"number": 5})])),
    Scenario("a long letter", KIND, "Open a case titled 'Letter' with the reference of this letter, and send a copy "
             f"to where copies go. What is the number of the case?\n\n{LETTER}", CaseDeskWorld.TOOLS, CaseDeskWorld,
             solve_letter, check_letter),
]  # fmt: skip
