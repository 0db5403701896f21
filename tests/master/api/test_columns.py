"""The columns of experiments: one entry each, from which all that shows and orders them comes."""

from __future__ import annotations

from tenax.cli.experiment.commands import _ORDERS, _WIRE_ORDERS
from tenax.client.experiments import ORDERS
from tenax.master.store.experiments.columns import EXPERIMENTS
from tests.kits.api import Api


def test_sdk_and_command_line_know_every_order_of_the_list() -> None:
    """They cannot ask the master's table, and name what it names."""
    assert set(ORDERS) == set(EXPERIMENTS.orders)
    assert {_WIRE_ORDERS.get(name, name) for name in _ORDERS} == set(ORDERS)


async def test_the_interface_names_every_order_of_the_list(api: Api) -> None:
    """Its description, and whoever asks for another one is told them."""
    refused = await api.user.get("/api/v1/experiments", sortBy="SORT_BY_COLOR")
    assert refused.status_code == 400
    document = (await api.nobody.get("/api/v1/openapi.json")).json()
    parameters = document["paths"]["/api/v1/experiments"]["get"]["parameters"]
    (sort_by,) = [parameter for parameter in parameters if parameter["name"] == "sortBy"]
    for name in EXPERIMENTS.orders:
        wire = f"SORT_BY_{name.upper()}"
        assert wire in sort_by["schema"]["enum"]
        assert wire in refused.text
        assert (await api.user.get("/api/v1/experiments", sortBy=wire)).status_code == 200
