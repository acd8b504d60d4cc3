"""Define scenarios that test the choice among similar tools: eight verbs for ten kinds of records make 80 tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from adapter.core.events import Json, JsonObject
from adapter.evaluation.scenario import ExecutedCall, ExpectedCall, Oracle, Scenario, ToolRefusal, missing_fact, tool

RECORD_KINDS = {
    "invoice": "bill sent to a customer",
    "ticket": "problem that a customer reported",
    "contract": "agreement with a supplier",
    "device": "computer or phone of an employee",
    "room": "meeting room",
    "shipment": "parcel on its way",
    "campaign": "advertising campaign",
    "candidate": "person who applied for a job",
    "licence": "software licence",
    "vehicle": "car or van of the company",
}
VERBS: dict[str, tuple[str, dict[str, str]]] = {
    "get": ("Show one {}", {"id": "string Its id."}),
    "list": ("List the ids of every {} with a status", {"status": "string open, closed or archived."}),
    "note": ("Add a note to one {}", {"id": "string Its id.", "text": "string The note."}),
    "close": ("Close one {}", {"id": "string Its id."}),
    "archive": ("Archive one {}", {"id": "string Its id."}),
    "delete": ("Delete one {} for good", {"id": "string Its id."}),
    "assign": ("Make an employee responsible for one {}", {"id": "string Its id.", "to": "string The employee."}),
    "copy": ("Make a copy of one {}", {"id": "string Its id."}),
}


def select_tools(count: int, *required: str) -> list[JsonObject]:
    """Return ``count`` tool definitions: the tools named ``required``, then similar tools, then others.

    The definitions are in the order of all 80 tools.
    """
    tools = {
        f"{verb}_{kind}": tool(f"{verb}_{kind}", f"{summary.format(kind)} ({about}).", **parameters)
        for kind, about in RECORD_KINDS.items()
        for verb, (summary, parameters) in VERBS.items()
    }
    kinds = {name.partition("_")[2] for name in required}
    similar = [name for name in tools if name.partition("_")[2] in kinds and name not in required]
    others = [name for name in tools if name not in similar and name not in required]
    selected = {*required, *(similar + others[:: max(1, len(others) // count)])[: count - len(required)]}
    return [definition for name, definition in tools.items() if name in selected]


class Records:
    """A world of records with a tool for each verb and kind of record. ``state`` has each record's fields, by its
    id."""

    def __init__(self, records: dict[str, JsonObject]) -> None:
        self.state = {id: {"status": "open", "owner": "nobody", "notes": [], **each} for id, each in records.items()}
        self._copies = 0

    def __getattr__(self, name: str) -> Callable[..., Json]:
        verb, _, kind = name.partition("_")
        return lambda **arguments: self._do(verb, kind, **arguments)

    def _do(self, verb: str, kind: str, id: str = "", status: str = "", text: str = "", to: str = "") -> Json:
        if verb == "list":
            return [key for key, one in self.state.items() if one["kind"] == kind and one["status"] == status]
        if (one := self.state.get(id)) is None or one["kind"] != kind:
            raise ToolRefusal(f"unknown {kind} {id!r}")
        match verb:
            case "get":
                return one
            case "note":
                one["notes"].append(text)
            case "close" | "archive":
                one["status"] = "closed" if verb == "close" else "archived"
            case "delete":
                del self.state[id]
            case "assign":
                one["owner"] = to
            case _:
                self._copies += 1
                copy = f"{id}-C{self._copies}"
                self.state[copy] = {**one, "notes": []}
                return {"copy": copy}
        return "done"


_START: dict[str, JsonObject] = {
    "INV-2207": {"kind": "invoice", "customer": "Marlow", "total": "1,318.40"},
    "INV-2219": {"kind": "invoice", "customer": "Osei", "total": "77.05"},
    "TCK-5130": {"kind": "ticket", "title": "scanner offline", "device": "DEV-9914"},
    "TCK-5131": {"kind": "ticket", "title": "badge lost", "device": "DEV-3306"},
    "DEV-9914": {"kind": "device", "model": "Halden 40", "serial": "HX7-2281-QA"},
    "DEV-3306": {"kind": "device", "model": "Pell 2", "serial": "PL2-0417-ZD"},
    "CTR-0042": {"kind": "contract", "supplier": "Brandt Kabel", "ends": "2031-08-19"},
    "CND-0771": {"kind": "candidate", "name": "Ines Okafor", "status": "closed"},
    "CND-0772": {"kind": "candidate", "name": "Tom Vrba"},
    "SHP-6604": {"kind": "shipment", "carrier": "Nordpost", "code": "NP55-8123-K"},
    "VEH-0018": {"kind": "vehicle", "plate": "KR 781 TL", "status": "archived"},
    "VEH-0021": {"kind": "vehicle", "plate": "KR 204 ZB"},
    "LIC-3300": {"kind": "licence", "product": "Foldwright", "seats": 45},
}


def _make_scenario(
    name: str, count: int, user: str, steps: Sequence[Sequence[ExpectedCall]], answer: str, facts: Sequence[str],
    changes: dict[str, JsonObject], easy: bool = False,
) -> Scenario:  # fmt: skip
    """Build a scenario from the ``steps`` of its solution.

    ``count`` is the number of tools. ``facts`` are strings that the answer must contain. ``changes`` has the expected
    changes by record id; all other fields must stay unchanged.
    """

    def create_oracle() -> Oracle:
        for step in steps:
            yield list(step)
        return answer

    def check(world: Records, executed: Sequence[ExecutedCall], answer: str) -> str:
        expected = Records(_START).state
        for id, change in changes.items():
            expected[id].update(change)
        if changed := [id for id in {**world.state, **expected} if world.state.get(id) != expected.get(id)]:
            return f"{changed[0]} is {world.state.get(changed[0])}, expected {expected.get(changed[0])}"
        for call in (call for step in steps for call in step):
            if not any(each.ok and each.name == call.name and each.arguments == call.arguments for each in executed):
                return f"{call.name} was not called with the expected arguments"
        return missing_fact(answer, facts)

    names = [call.name for step in steps for call in step]
    tools = select_tools(count, *names)
    return Scenario(name, "tool selection", user, tools, lambda: Records(_START), create_oracle, check, easy=easy)


SCENARIOS = [
    *(
        _make_scenario(
            f"ending of a contract, {count} tools", count, "When does the contract CTR-0042 end?",
            [[ExpectedCall("get_contract", {"id": "CTR-0042"})]], "It ends on 2031-08-19.", ["2031-08-19"], {},
            easy=count == 5,
        )
        for count in (5, 20, 80)
    ),
    *(
        _make_scenario(
            f"archive, do not delete, {count} tools", count,
            "The ticket about the lost badge, TCK-5131, is settled. Archive it, and give me the serial number of the "
            "device that it names.",
            [[ExpectedCall("get_ticket", {"id": "TCK-5131"})],
             [ExpectedCall("archive_ticket", {"id": "TCK-5131"})],
             [ExpectedCall("get_device", {"id": "DEV-3306"})]],
            "TCK-5131 is archived; the serial number is PL2-0417-ZD.", ["PL2-0417-ZD"],
            {"TCK-5131": {"status": "archived"}},
        )
        for count in (20, 80)
    ),
    _make_scenario(
        "assign the open vehicle, 80 tools", 80,
        "Make Petra responsible for the only vehicle that is still open, and give me its number plate.",
        [[ExpectedCall("list_vehicle", {"status": "open"})],
         [ExpectedCall("assign_vehicle", {"id": "VEH-0021", "to": "Petra"})],
         [ExpectedCall("get_vehicle", {"id": "VEH-0021"})]],
        "Petra is responsible for KR 204 ZB.", ["KR 204 ZB"], {"VEH-0021": {"owner": "Petra"}},
    ),
]  # fmt: skip
