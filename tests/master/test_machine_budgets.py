"""A budget of a month, pass by pass of the loop that rents."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from tests.kits.master.scaling import Place, line, master_settings, place, rented, server, use

__all__ = ["line", "master_settings", "place", "rented", "server"]


@pytest.mark.parametrize("server", ["aws"], indirect=True)
async def test_once_a_budget_is_used_up_nothing_is_rented_until_it_is_raised(place: Place) -> None:
    """What is there goes on; with a budget that stops it is let go."""
    use(place, price=2.0, budget_per_month=10.0)
    await place.waits(2)
    await place.passes(2)
    name = await place.join(place.rented.running()[0])
    await place.passes(2)
    # Nearly all of it is spent.
    await place.execute(
        "update machines set rented_at = date_trunc('month', now() at time zone 'UTC') at time zone 'UTC'"
    )
    await place.execute("update machines set price = 10 / (extract(epoch from now() - rented_at) / 3600) * 0.5")
    await place.waits(2)
    await place.waits(2)
    await place.passes(2)
    assert len(await place.states()) == 2
    await place.execute("update machines set price = price * 2.1")
    await place.waits(2)
    await place.passes(2)
    assert len(await place.states()) == 2
    assert (await place.states())[name] == "JOINED"
    # What was planned while there was money is not asked for any more.
    await place.execute("update machines set price = price * 0.5")
    use(place, price=2.0, budget_per_month=10.0, max_instances=3)
    place.point.left = 2
    await place.passes(1)
    use(place, price=2.0, budget_per_month=10.0, max_instances=3)
    [planned] = [each for each, state in (await place.states()).items() if state == "PLANNED"]
    await place.execute("update machines set price = price * 2")
    await place.passes(2)
    assert (await place.states())[planned] == "FAILED"
    use(place, price=2.0, budget_per_month=10.0, budget_stops=True, max_instances=5)
    await place.passes(1)
    assert (await place.states())[name] in ("LEAVING", "ENDING")
    before = len(await place.states())
    use(place, price=2.0, budget_per_month=1000.0, max_instances=5)
    await place.passes(2)
    assert len(await place.states()) > before


@pytest.mark.parametrize("server", ["aws"], indirect=True)
async def test_who_reads_the_log_knows_once_that_a_budget_is_nearly_spent(place: Place) -> None:
    """From four fifths on, and once more when all of it is; not at each pass, nor by each master; so do webhooks."""
    await place.listen()
    use(place, price=2.0, budget_per_month=10.0)
    await place.waits(2)
    await place.passes(2)
    await place.join(place.rented.running()[0])
    await place.execute(
        "update machines set rented_at = date_trunc('month', now() at time zone 'UTC') at time zone 'UTC'"
    )
    warnings: list[list[str]] = []
    for part in (0.5, 0.81, 0.82, 1.01, 1.02):
        await place.execute(f"update machines set price = 10 / (extract(epoch from now() - rented_at) / 3600) * {part}")
        with capture_logs() as lines:
            await place.passes(2)
            # Another master, which knows nothing but what the database does.
            place.loop = place._begun()
            use(place, price=2.0, budget_per_month=10.0)
            await place.passes(2)
        warnings.append([line["event"] for line in lines if "budget" in line["event"]])
    nearly, spent = warnings[1], warnings[3]
    assert warnings == [[], nearly, [], spent, []]
    assert [text.startswith("80% of the budget of pool") for text in nearly] == [True]
    assert ["is used up" in text for text in spent] == [True]
    sent = [(event, it["resource_pool"], it["why"]) for event, it in await place.deliveries() if event != "LAUNCHED"]
    assert sent == [("BUDGET_NEARLY", "default", nearly[0]), ("BUDGET_USED_UP", "default", spent[0])]


@pytest.mark.parametrize("server", ["aws"], indirect=True)
@pytest.mark.parametrize("point", [1, 2])
async def test_killed_as_a_budget_is_used_up_it_is_told_once(place: Place, point: int) -> None:
    """Before it is written, and just after."""
    await place.listen()
    await place.waits(2)
    await place.passes(2)
    await place.execute("update machines set rented_at = now() - interval '1 hour', price = 100")
    use(place, price=100.0, budget_per_month=1.0)
    place.point.left = point
    await place.passes(1)
    assert place.point.left == 0, "it was never there"
    use(place, price=100.0, budget_per_month=1.0)
    await place.passes(2)
    assert [event for event, _ in await place.deliveries()] == ["LAUNCHED", "BUDGET_USED_UP"]
