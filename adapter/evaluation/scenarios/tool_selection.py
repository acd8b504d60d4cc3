"""One world of records for tool selection: eight verbs for ten kinds of records are 80 tools that are alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from adapter.core.events import Json, JsonObject
from adapter.evaluation.scenario import ExecutedCall, ExpectedCall, Oracle, Scenario, ToolRefusal, missing_fact, tool

THINGS = {
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


def tools(count: int, *named: str) -> list[JsonObject]:
    """So many tools, with those that are ``named`` among them; in the order of the whole set."""
    every = {
        f"{verb}_{thing}": tool(f"{verb}_{thing}", f"{told.format(thing)} ({about}).", **parameters)
        for thing, about in THINGS.items()
        for verb, (told, parameters) in VERBS.items()
    }
    kinds = {name.partition("_")[2] for name in named}
    near = [name for name in every if name.partition("_")[2] in kinds and name not in named]
    far = [name for name in every if name not in near and name not in named]
    chosen = {*named, *(near + far[:: max(1, len(far) // count)])[: count - len(named)]}
    order = [name for name in every if name in chosen]
    return [every[name] for name in order]


class Records:
    """What each verb does to the records. ``state``: by id, the status, the owner, the notes and the text."""

    def __init__(self, records: dict[str, JsonObject]) -> None:
        self.state = {id: {"status": "open", "owner": "nobody", "notes": [], **each} for id, each in records.items()}
        self._copies = 0

    def __getattr__(self, name: str) -> Callable[..., Json]:
        verb, _, thing = name.partition("_")
        return lambda **arguments: self._do(verb, thing, **arguments)

    def _do(self, verb: str, thing: str, id: str = "", status: str = "", text: str = "", to: str = "") -> Json:
        if verb == "list":
            return [key for key, one in self.state.items() if one["kind"] == thing and one["status"] == status]
        if (one := self.state.get(id)) is None or one["kind"] != thing:
            raise ToolRefusal(f"there is no {thing} {id!r}")
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


def _scenario(name: str, count: int, user: str, steps: Sequence[Sequence[ExpectedCall]], answer: str, facts: Sequence[str],
              after: dict[str, JsonObject], easy: bool = False) -> Scenario:  # fmt: skip
    """``after``: what differs in the state when it is done; everything else has to be as it was."""

    def oracle() -> Oracle:
        for step in steps:
            yield list(step)
        return answer

    def check(world: Records, made: Sequence[ExecutedCall], said: str) -> str:
        expected = Records(_START).state
        for id, change in after.items():
            expected[id].update(change)
        if changed := [id for id in {**world.state, **expected} if world.state.get(id) != expected.get(id)]:
            return f"{changed[0]} is {world.state.get(changed[0])}, expected {expected.get(changed[0])}"
        for call in (call for step in steps for call in step):
            if not any(one.ok and one.name == call.name and one.arguments == call.arguments for one in made):
                return f"{call.name} was not called as it has to be"
        return missing_fact(said, facts)

    named = [call.name for step in steps for call in step]
    return Scenario(
        name, "tool selection", user, tools(count, *named), lambda: Records(_START), oracle, check, easy=easy
    )


SCENARIOS = [
    _scenario(
        "ending of a contract, 5 tools", 5, "When does the contract CTR-0042 end?",
        [[ExpectedCall("get_contract", {"id": "CTR-0042"})]], "It ends on 2031-08-19.", ["2031-08-19"], {}, easy=True,
    ),
    _scenario(
        "ending of a contract, 20 tools", 20, "When does the contract CTR-0042 end?",
        [[ExpectedCall("get_contract", {"id": "CTR-0042"})]], "It ends on 2031-08-19.", ["2031-08-19"], {},
    ),
    _scenario(
        "ending of a contract, 80 tools", 80, "When does the contract CTR-0042 end?",
        [[ExpectedCall("get_contract", {"id": "CTR-0042"})]], "It ends on 2031-08-19.", ["2031-08-19"], {},
    ),
    _scenario(
        "archive, do not delete, 20 tools", 20,
        "The ticket about the lost badge, TCK-5131, is settled. Archive it, and tell me the serial number of the "
        "device that it names.",
        [[ExpectedCall("get_ticket", {"id": "TCK-5131"})],
         [ExpectedCall("archive_ticket", {"id": "TCK-5131"})],
         [ExpectedCall("get_device", {"id": "DEV-3306"})]],
        "TCK-5131 is archived; the serial number is PL2-0417-ZD.", ["PL2-0417-ZD"],
        {"TCK-5131": {"status": "archived"}},
    ),
    _scenario(
        "archive, do not delete, 80 tools", 80,
        "The ticket about the lost badge, TCK-5131, is settled. Archive it, and tell me the serial number of the "
        "device that it names.",
        [[ExpectedCall("get_ticket", {"id": "TCK-5131"})],
         [ExpectedCall("archive_ticket", {"id": "TCK-5131"})],
         [ExpectedCall("get_device", {"id": "DEV-3306"})]],
        "TCK-5131 is archived; the serial number is PL2-0417-ZD.", ["PL2-0417-ZD"],
        {"TCK-5131": {"status": "archived"}},
    ),
    _scenario(
        "assign the open vehicle, 80 tools", 80,
        "Make Petra responsible for the only vehicle that is still open, and tell me its number plate.",
        [[ExpectedCall("list_vehicle", {"status": "open"})],
         [ExpectedCall("assign_vehicle", {"id": "VEH-0021", "to": "Petra"})],
         [ExpectedCall("get_vehicle", {"id": "VEH-0021"})]],
        "Petra is responsible for KR 204 ZB.", ["KR 204 ZB"], {"VEH-0021": {"owner": "Petra"}},
    ),
]  # fmt: skip
