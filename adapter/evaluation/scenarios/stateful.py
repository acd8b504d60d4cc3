"""Define scenarios with a stateful environment, in which later results do not reveal a wrong argument."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import ClassVar

from adapter.core.events import JsonObject
from adapter.evaluation.scenario import ExecutedCall, ExpectedCall, Oracle, Scenario, ToolRefusal, missing_fact, tool

KIND = "stateful"


class ShelfWorld:
    """A world with a shelf of slots, and an arm that can carry one box at a time."""

    TOOLS: ClassVar = [
        tool("pick", "Take the box out of a slot; the arm has to be empty.", slot="string A letter."),
        tool("place", "Put the box into a slot; the slot has to be empty.", slot="string A letter."),
        tool("weigh", "Weigh the box in the arm."),
    ]

    def __init__(self) -> None:
        self.slots = {"A": "K-118", "B": "K-276", "C": "", "D": "K-903"}
        self.arm = ""

    def pick(self, slot: str) -> JsonObject:
        if self.arm or not self.slots.get(slot):
            raise ToolRefusal("the arm holds a box" if self.arm else f"slot {slot} is empty")
        self.arm, self.slots[slot] = self.slots[slot], ""
        return {"arm": self.arm}

    def place(self, slot: str) -> JsonObject:
        if not self.arm or self.slots.get(slot, "there is none") != "":
            raise ToolRefusal(f"slot {slot} is not free" if self.arm else "the arm is empty")
        self.slots[slot], self.arm = self.arm, ""
        return {slot: self.slots[slot]}

    def weigh(self) -> JsonObject:
        return {"grams": {"K-118": 7415, "K-276": 3862, "K-903": 12_049}.get(self.arm, 0)}


def solve_swap() -> Oracle:
    for source, target in (("A", "C"), ("B", "A"), ("C", "B")):
        yield [ExpectedCall("pick", {"slot": source})]
        yield [ExpectedCall("place", {"slot": target})]
    return "The boxes of A and B are swapped: A holds K-276 and B holds K-118."


def check_swap(world: ShelfWorld, _executed: Sequence[ExecutedCall], answer: str) -> str:
    expected = {"A": "K-276", "B": "K-118", "C": "", "D": "K-903"}
    return (
        missing_fact(answer, ["K-276"]) if world.slots == expected else f"the slots are {world.slots}, not {expected}"
    )


def solve_weigh() -> Oracle:
    yield [ExpectedCall("pick", {"slot": "D"})]
    (weight,) = yield [ExpectedCall("weigh")]
    yield [ExpectedCall("place", {"slot": "C"})]
    return f"The box weighs {json.loads(weight)['grams']} grams and is in C now."


def check_weigh(world: ShelfWorld, executed: Sequence[ExecutedCall], answer: str) -> str:
    if world.slots != {"A": "K-118", "B": "K-276", "C": "K-903", "D": ""}:
        return f"the slots are {world.slots}"
    return missing_fact(answer, ["12049"]) if any(call.name == "weigh" for call in executed) else "nothing was weighed"


class BankWorld:
    """A world with bank accounts. Transfers cannot be undone."""

    TOOLS: ClassVar = [
        tool("balance", "The balance of an account, in cents.", account="string Its name."),
        tool("transfer", "Move money between accounts; gives a receipt.", source="string From.", target="string To.",
             cents="integer How much."),
    ]  # fmt: skip

    def __init__(self) -> None:
        self.cents = {"savings": 148_263, "checking": 20_417, "rent": 0}
        self.moves = 0

    def balance(self, account: str) -> JsonObject:
        return {"account": account, "cents": self._get_balance(account)}

    def transfer(self, source: str, target: str, cents: int) -> JsonObject:
        if not 0 < cents <= self._get_balance(source):
            raise ToolRefusal(f"{source} has {self._get_balance(source)} cents, {cents} cannot be moved")
        self._get_balance(target)
        cents = int(cents)  # JSON Schema also accepts 5.0 as an integer
        self.cents[source] -= cents
        self.cents[target] += cents
        self.moves += 1
        return {"receipt": f"T{self.moves}-{cents * 7919 % 9973:04}"}

    def _get_balance(self, account: str) -> int:
        if account not in self.cents:
            raise ToolRefusal(f"unknown account {account!r}; the accounts are: {', '.join(self.cents)}")
        return self.cents[account]


def solve_savings() -> Oracle:
    (savings,) = yield [ExpectedCall("balance", {"account": "savings"})]
    all_of_it = json.loads(savings)["cents"]
    yield [ExpectedCall("transfer", {"source": "savings", "target": "checking", "cents": all_of_it})]
    (receipt,) = yield [ExpectedCall("transfer", {"source": "checking", "target": "rent", "cents": 95_000})]
    return f"All is moved; the receipt for the rent is {json.loads(receipt)['receipt']}."


def check_savings(world: BankWorld, _executed: Sequence[ExecutedCall], answer: str) -> str:
    expected = {"savings": 0, "checking": 73_680, "rent": 95_000}
    if world.cents != expected or world.moves != 2:
        return f"the accounts are {world.cents} after {world.moves} transfers, not {expected} after 2"
    return missing_fact(answer, [f"T2-{95_000 * 7919 % 9973:04}"])


class FolderWorld:
    """A world with nested folders. Every call refers to the current folder."""

    TOOLS: ClassVar = [
        tool("enter", "Go into a folder below the present one, or up with '..'.", folder="string Its name."),
        tool("look", "List the contents of the current folder."),
        tool("read", "Read a file of the current folder.", file="string Its name."),
    ]
    TREE: ClassVar[JsonObject] = {
        "plans": {"2030": {"budget.txt": "total: 61,907"}, "2031": {"budget.txt": "total: 84,352"}},
        "notes": {"budget.txt": "ask in plans"},
    }

    def __init__(self) -> None:
        self.path: list[str] = []

    @property
    def here(self) -> JsonObject:
        here = self.TREE
        for folder in self.path:
            here = here[folder]
        return here

    def enter(self, folder: str) -> JsonObject:
        if folder == "..":
            self.path = self.path[:-1]
        elif isinstance(self.here.get(folder), dict):
            self.path.append(folder)
        else:
            raise ToolRefusal(f"folder {folder!r} not found in /{'/'.join(self.path)}")
        return {"here": "/" + "/".join(self.path)}

    def look(self) -> list[str]:
        return sorted(self.here)

    def read(self, file: str) -> str:
        if not isinstance(self.here.get(file), str):
            raise ToolRefusal(f"file {file!r} not found in /{'/'.join(self.path)}")
        return str(self.here[file])


def solve_budgets() -> Oracle:
    yield [ExpectedCall("enter", {"folder": "plans"})]
    yield [ExpectedCall("enter", {"folder": "2031"})]
    (later,) = yield [ExpectedCall("read", {"file": "budget.txt"})]
    yield [ExpectedCall("enter", {"folder": ".."})]
    yield [ExpectedCall("enter", {"folder": "2030"})]
    (earlier,) = yield [ExpectedCall("read", {"file": "budget.txt"})]
    return f"In 2030 the {earlier}, in 2031 the {later}."


def check_budgets(_world: FolderWorld, executed: Sequence[ExecutedCall], answer: str) -> str:
    read = {call.result for call in executed if call.name == "read"}
    return missing_fact(answer, ["61907", "84352"]) if len(read) >= 2 else "not both were read"


class BoilerWorld:
    """A world with a boiler. The pressure can only rise while the valve is open, and the tank bursts above 80 bar."""

    TOOLS: ClassVar = [
        tool("valve", "Open or close the valve.", open="boolean True to open it."),
        tool("pressure", "Set the pressure.", bar="integer From 0 to 100."),
        tool("seal", "Seal the tank as it is; gives the number of the seal."),
    ]

    def __init__(self) -> None:
        self.open, self.bar, self.burst, self.seals = False, 10, False, list[tuple[bool, int]]()

    def valve(self, open: bool) -> JsonObject:
        self.open = open
        return {"open": open}

    def pressure(self, bar: int) -> JsonObject:
        if not self.open and bar > self.bar:
            raise ToolRefusal("the pressure cannot be raised while the valve is closed")
        self.bar, self.burst = bar, self.burst or bar > 80
        return {"bar": bar}

    def seal(self) -> JsonObject:
        self.seals.append((self.open, self.bar))
        return {"seal": f"S-{self.bar * 131 % 997}{'o' if self.open else 'c'}"}


def solve_seal() -> Oracle:
    yield [ExpectedCall("valve", {"open": True})]
    yield [ExpectedCall("pressure", {"bar": 64})]
    yield [ExpectedCall("valve", {"open": False})]
    (seal,) = yield [ExpectedCall("seal")]
    return f"The tank is sealed: {json.loads(seal)['seal']}."


def check_seal(world: BoilerWorld, _executed: Sequence[ExecutedCall], answer: str) -> str:
    if world.burst or world.seals != [(False, 64)]:
        return "the tank burst" if world.burst else f"the seals are {world.seals}"
    return missing_fact(answer, [f"S-{64 * 131 % 997}c"])


class SeatWorld:
    """A world with seats that are reserved and then confirmed. Only the latest reservation can be confirmed."""

    TOOLS: ClassVar = [
        tool("free", "The free seats of a row.", row="integer Its number."),
        tool("hold", "Hold a seat for a moment; a seat held before is given up.", seat="string Such as 4A."),
        tool("confirm", "Book the seat that is held.", token="string From hold.", name="string Who sits there."),
    ]

    def __init__(self) -> None:
        self.rows = {14: ["14C", "14E"], 15: ["15B"]}
        self.held, self.booked = ("", ""), list[tuple[str, str]]()

    def free(self, row: int) -> list[str]:
        return self.rows.get(row, [])

    def hold(self, seat: str) -> JsonObject:
        if not any(seat in row for row in self.rows.values()):
            raise ToolRefusal(f"seat {seat} is not free")
        self.held = (seat, f"h{sum(map(ord, seat)) * 37 % 9973}")
        return {"seat": seat, "token": self.held[1]}

    def confirm(self, token: str, name: str) -> JsonObject:
        if not token or token != self.held[1]:
            raise ToolRefusal("this token holds no seat any more")
        self.booked.append((self.held[0], name))
        self.held = ("", "")
        return {"booking": f"{self.booked[-1][0]}-{sum(map(ord, name)) * 53 % 9973}"}


def solve_seat() -> Oracle:
    (free,) = yield [ExpectedCall("free", {"row": 14})]
    (held,) = yield [ExpectedCall("hold", {"seat": json.loads(free)[-1]})]
    (booked,) = yield [ExpectedCall("confirm", {"token": json.loads(held)["token"], "name": "Dana Kral"})]
    return f"Dana Kral is booked: {json.loads(booked)['booking']}."


def check_seat(world: SeatWorld, _executed: Sequence[ExecutedCall], answer: str) -> str:
    if world.booked != [("14E", "Dana Kral")]:
        return f"booked is {world.booked}"
    return missing_fact(answer, [f"14E-{sum(map(ord, 'Dana Kral')) * 53 % 9973}"])


SCENARIOS = [
    Scenario("swap two boxes", KIND, "Swap the boxes in the slots A and B; slot C is free. Which box is in A then?",
             ShelfWorld.TOOLS, ShelfWorld, solve_swap, check_swap),
    Scenario("weigh and move", KIND, "Weigh the box in slot D and put it into slot C. How many grams has it?",
             ShelfWorld.TOOLS, ShelfWorld, solve_weigh, check_weigh),
    Scenario("empty the savings", KIND,
             "Move everything from savings to checking, then 950 euros (95000 cents) from checking to rent, and give "
             "me the receipt for the rent.", BankWorld.TOOLS, BankWorld, solve_savings, check_savings),
    Scenario("two budgets", KIND, "In the folder plans there is one folder a year, each with a budget.txt. What are "
             "the totals of 2031 and of 2030?", FolderWorld.TOOLS, FolderWorld, solve_budgets, check_budgets),
    Scenario("seal at 64 bar", KIND, "Seal the tank at 64 bar with the valve closed, and give me the number of the "
             "seal. It bursts above 80.", BoilerWorld.TOOLS, BoilerWorld, solve_seal, check_seal),
    Scenario("a seat for Dana", KIND, "Book the last of the free seats in row 14 for Dana Kral, and give me the "
             "booking.", SeatWorld.TOOLS, SeatWorld, solve_seat, check_seat),
]  # fmt: skip
