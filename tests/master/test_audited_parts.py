"""What is left of machines at their provider: disks, addresses, spot requests; and what is under way."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from tenax.master.provision.port import PartKind
from tests.kits.compute_engine import ZONES
from tests.kits.master.scaling import Place, RentedSomewhere, line, master_settings, place, rented, server
from tests.kits.rented import RentedAtMoto
from tests.kits.rented_gcp import RentedAtGoogle

__all__ = ["line", "master_settings", "place", "rented", "server"]

AUDIT, DELETE = "/api/v1/machines/audit", "/api/v1/machines/audit/delete-parts"
KINDS = (PartKind.DISK, PartKind.ADDRESS, PartKind.SPOT_REQUEST)
UNKNOWN = "m-" + "0" * 20


async def parts(place: Place) -> dict[str, Any]:
    """As an administrator is shown them, by the provider's name."""
    reply = await place.api.admin.get(AUDIT)
    assert (reply.status_code, reply.json()["unanswered"]) == (200, [])
    return {each["providerId"]: each for each in reply.json()["parts"]}


async def left_behind(place: Place, kind: PartKind, marks: dict[str, str]) -> Any:
    """A part that somebody has made, as it is shown."""
    name = place.rented.leave(kind, marks)
    return (await parts(place))[name]


def deletable(rented: RentedSomewhere) -> tuple[PartKind, ...]:
    """Google has no spot requests."""
    return (PartKind.DISK, PartKind.SPOT_REQUEST) if isinstance(rented, RentedAtMoto) else (PartKind.DISK,)


def named(part: Any, **changes: str) -> dict[str, Any]:
    """As it is named where it is to be deleted."""
    return {**{name: part[name] for name in ("provider", "region", "kind", "providerId")}, **changes}


async def delete(place: Place, *those: dict[str, Any]) -> list[str]:
    """Why each is there still."""
    reply = await place.api.admin.post(DELETE, {"parts": list(those)})
    assert reply.status_code == 200, reply.text
    return [each["failure"] for each in reply.json()["parts"]]


async def test_what_is_left_of_a_machine_is_shown_and_deleted(place: Place) -> None:
    """Of one that is gone, and of one that nobody knows; what one has that is there stays, and what people made."""
    ours = {"tenax-cluster": str(place.api.master.cluster.cluster_id)}
    name = await place.rented_one()
    of_it = []
    for kind in deletable(place.rented):
        unknown = place.rented.leave(kind, {**ours, "tenax-machine": UNKNOWN})
        bare = place.rented.leave(kind, ours)
        coming = place.rented.leave(kind, {**ours, "tenax-machine": name})
        theirs = place.rented.leave(kind, {"tenax-cluster": "another", "tenax-machine": UNKNOWN})
        shown = {key: each for key, each in (await parts(place)).items() if each["kind"] == kind.value}
        assert theirs not in shown
        assert [shown[each]["stray"] for each in (unknown, bare, coming)] == [True, False, False]
        assert f"no row of {UNKNOWN}" in shown[unknown]["why"]
        assert "no mark of a machine" in shown[bare]["why"]
        assert (shown[coming]["machineId"], shown[coming]["state"]) == (name, "STARTING")
        of_another = named(shown[unknown], providerId=theirs)
        another_kind = named(shown[unknown], kind="ADDRESS")
        with capture_logs() as lines:
            failures = await delete(
                place, *(named(shown[each]) for each in (bare, coming, unknown)), of_another, another_kind
            )
        assert [bool(each) for each in failures] == [True, True, False, True, True]
        assert failures[3] == failures[4] == "there is none with the mark of this cluster"
        assert [(line["name"], line["by"]) for line in lines if "deleted" in line["event"]] == [(unknown, "admin")]
        assert unknown not in place.rented.left(kind)
        assert {bare, coming} <= set(place.rented.left(kind))
        of_it.append(coming)
    assert await place.states() == {name: "STARTING"}
    for instance in place.rented.running():
        place.rented.terminate(instance)
    await place.execute("update machines set state = 'GONE', ended_at = now(), story = 'idle for long'")
    left = [(await parts(place))[each] for each in of_it]
    assert {(each["stray"], each["why"]) for each in left} == {
        (True, "left of a machine that has ended: idle for long")
    }
    await place.execute("update machines set state = 'STARTING', ended_at = null")
    assert set(await delete(place, *map(named, left))) == {"its machine is there, or something may be under way for it"}
    assert (await place.api.user.post(DELETE, {"parts": [named(left[0])]})).status_code == 403
    for number in (0, 101):
        many = [named(left[0], providerId=str(each)) for each in range(number)]
        assert (await place.api.admin.post(DELETE, {"parts": many})).status_code == 400


async def test_what_a_machine_has_stays_and_so_do_addresses(place: Place) -> None:
    """Also of one without a row: a disk goes with it."""
    await place.rented_one()
    [instance] = place.rented.running()
    ours = {"tenax-cluster": str(place.api.master.cluster.cluster_id), "tenax-machine": UNKNOWN}
    for kind in KINDS[:2]:
        held = place.rented.leave(kind, ours, instance)
        part = (await parts(place))[held]
        assert (part["holder"], part["stray"], part["why"]) == (instance, False, f"{instance} has it")
        assert await delete(place, named(part)) == [f"{instance} has it"]
    address = await left_behind(place, PartKind.ADDRESS, ours)
    assert (address["stray"], address["why"]) == (False, "somebody has reserved it: Tenax makes none")
    assert await delete(place, named(address)) == [address["why"]]
    assert len(place.rented.left(PartKind.ADDRESS)) == 2


async def test_the_disk_of_a_machine_that_is_there_without_a_row_stays(place: Place) -> None:
    """It is attached in a moment: as of a database that was restored while a master ordered."""
    marks = {"tenax-cluster": str(place.api.master.cluster.cluster_id), "tenax-machine": UNKNOWN}
    place.rented.launch(marks)
    disk = await left_behind(place, PartKind.DISK, marks)
    assert (disk["stray"], disk["state"]) == (False, "")
    assert await delete(place, named(disk)) == ["its machine is there, or something may be under way for it"]


@pytest.mark.parametrize("server", ["gcp"], indirect=True)
async def test_at_google_what_is_under_way_is_shown_and_what_does_not_answer_is_named(place: Place) -> None:
    """Of machines that have rows; it ends by itself."""
    rented = place.rented
    assert isinstance(rented, RentedAtGoogle)
    rented.engine.stuck = True
    name = await place.rented_one()
    theirs = "m-" + "1" * 20
    with rented.engine.lock:
        rented.engine._operation("insert", f"{ZONES[0]}/theirs-{theirs}")
        rented.engine._operation("insert", f"{ZONES[0]}/by-hand")
    [part] = (await parts(place)).values()
    assert (part["kind"], part["detail"], part["machineId"], part["stray"]) == ("OPERATION", "insert", name, False)
    assert part["why"].startswith(f"under way for {ZONES[0]}/")
    # What is being made has its disk first.
    marks = {"tenax-cluster": str(place.api.master.cluster.cluster_id), "tenax-machine": theirs}
    disk = await left_behind(place, PartKind.DISK, marks)
    assert (disk["stray"], disk["why"]) == (False, "its machine is there, or something may be under way for it")
    # Where operations cannot be listed, nobody knows that there is none.
    free = rented.leave(PartKind.DISK, {**marks, "tenax-machine": UNKNOWN})
    assert (await parts(place))[free]["stray"]
    rented.engine.forbidden = {"compute.globalOperations.aggregatedList"}
    listed = (await place.api.admin.get(AUDIT)).json()["parts"]
    assert [each["stray"] for each in listed if each["providerId"] == free] == [False]
    rented.engine.forbidden = {"compute.disks.aggregatedList"}
    [away] = (await place.api.admin.get(AUDIT)).json()["unanswered"]
    assert away["reason"].startswith("no disk was looked at: the master's account lacks a right: allow compute.disks")
    [failure] = await delete(place, named(disk))
    assert failure == away["reason"]
