"""What the page remembers for whoever asks. Everyone has their own, and sees no other's."""

from __future__ import annotations

from tenax.errors import InvalidInput
from tenax.master.access.authorization import Allow
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.users import messages
from tenax.master.store.users import settings as user_settings
from tenax.master.store.users.settings import SettingKey
from tenax.wire.message import Empty

routes = Routes("Users")


@routes.get("/api/v1/users/setting", "GetUserSetting", allow=Allow.USER)
async def get_user_setting(master: MasterDep, caller: CallerDep) -> messages.GetUserSettingResponse:
    """All settings of the caller."""
    async with master.db.connection() as conn:
        kept = await user_settings.of_user(conn, caller.person.id)
    settings = [
        messages.UserWebSetting(key=place.key, value=value, storage_path=place.storage_path)
        for place, value in kept.items()
    ]
    return messages.GetUserSettingResponse(settings=settings)


@routes.post("/api/v1/users/setting", "PostUserSetting", allow=Allow.USER)
async def post_user_setting(master: MasterDep, caller: CallerDep, body: messages.PostUserSettingRequest) -> Empty:
    """Keep settings of the caller; those of other names stay."""
    values = {SettingKey(setting.storage_path, setting.key): setting.value for setting in body.settings}
    if any(not place.key for place in values):
        raise InvalidInput("settings.key is blank: every setting needs one")
    async with master.db.transaction() as conn:
        await user_settings.put(conn, caller.person.id, values)
    return Empty()


@routes.post("/api/v1/users/setting/reset", "ResetUserSetting", allow=Allow.USER)
async def reset_user_setting(master: MasterDep, caller: CallerDep) -> Empty:
    """Forget all settings of the caller."""
    async with master.db.transaction() as conn:
        await user_settings.reset(conn, caller.person.id)
    return Empty()


@routes.post("/api/v1/users/activity", "PostUserActivity", allow=Allow.USER)
async def post_user_activity(master: MasterDep, caller: CallerDep, body: messages.PostUserActivityRequest) -> Empty:
    """Record that the caller viewed a project."""
    if body.activity_type is not messages.ActivityType.GET or body.entity_type is not messages.EntityType.PROJECT:
        raise InvalidInput(
            "activityType and entityType must be ACTIVITY_TYPE_GET and ENTITY_TYPE_PROJECT: nothing else is remembered"
        )
    async with master.db.transaction() as conn:
        await user_settings.saw_project(conn, caller.person.id, body.entity_id)
    return Empty()
