"""How people name a checkpoint: by the beginning of its uuid."""

from __future__ import annotations

from tests.kits.api import Api
from tests.kits.master.attempts import running
from tests.kits.master.checkpoints import UUID, report


async def test_a_checkpoint_is_found_by_the_beginning_of_its_uuid(api: Api) -> None:
    """As long as it is the only one that begins so; three characters are too few."""
    run = await running(api)
    await report(run)
    other = UUID[:6] + ("0" if UUID[6] != "0" else "1") + UUID[7:]
    assert (await api.user.get(f"/api/v1/checkpoints/{UUID[:8]}")).json()["checkpoint"]["uuid"] == UUID
    await report(run, uuid=other)
    found = await api.user.get(f"/api/v1/checkpoints/{UUID[:6]}")
    assert found.status_code == 400
    assert UUID in found.text
    assert other in found.text
    assert (await api.user.get(f"/api/v1/checkpoints/{UUID[:7]}")).json()["checkpoint"]["uuid"] == UUID
    assert (await api.user.get(f"/api/v1/checkpoints/{UUID}")).json()["checkpoint"]["uuid"] == UUID
    found = await api.user.get(f"/api/v1/checkpoints/{UUID[:3]}")
    assert found.status_code == 404
    assert "give 4 characters of its id, or more" in found.text
