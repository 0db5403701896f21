"""What may be said of machines that are rented, and what is refused, in words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tenax.config.master import load_master_settings
from tenax.config.problems import ConfigError
from tenax.config.provider import NOT_YET, ProviderSettings
from tenax.config.settings import in_clear

USUAL: Mapping[str, object] = {
    "type": "aws",
    "master_url": "https://master.example.org",
    "region": "us-west-2",
    "image_id": "ami-03cf127a",
    "instance_type": "g5.12xlarge",
    "instance_slots": 4,
}


def read(tmp_path: Path, **changes: object) -> ProviderSettings:
    """The settings of a pool as its file has them; None takes one away."""
    given = {name: value for name, value in {**USUAL, **changes}.items() if value is not None}
    file = tmp_path / "master.yaml"
    file.write_text(json.dumps({"pools": [{"name": "default", "provider": given}]}))
    provider = load_master_settings(file, environ={}).pools[0].provider
    assert provider is not None
    return provider


def test_determineds_names_and_defaults(tmp_path: Path) -> None:
    """Of those that are there; what another master reads of them is the same."""
    provider = read(tmp_path, max_idle_agent_period="90s", custom_tags=[{"key": "team", "value": "vision"}])
    assert (provider.min_instances, provider.max_instances) == (0, 5)
    assert (provider.max_idle_agent_period, provider.max_agent_starting_period) == (90.0, 1200.0)
    assert provider.root_volume_size == 200
    assert read(tmp_path, **in_clear(provider)) == provider


@pytest.mark.parametrize("name", sorted(NOT_YET))
def test_what_is_not_there_yet_is_refused(tmp_path: Path, name: str) -> None:
    """With what to do instead; nothing of Determined's is ignored."""
    with pytest.raises(ConfigError, match=rf"provider\.{name} \(line 1\): has no effect yet: .*; leave it out"):
        read(tmp_path, **{name: "something"})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"type": "hpc"}, "machines of type hpc cannot be rented yet: type can be aws or gcp"),
        ({"type": None}, "provider.type (line 1): it is missing: type can be aws or gcp"),
        ({"min_instances": 6}, "min_instances is 6 and max_instances 5"),
        ({"max_idle_agent_period": "20"}, "'20' is no duration"),
        ({"max_idle_agent_period": "0s"}, "max_idle_agent_period must be between 1s and 30d"),
        ({"master_url": "http://127.0.0.1:8080"}, "which is the machine itself for every machine"),
        ({"master_url": "http://0.0.0.0:8080"}, "which is the machine itself for every machine"),
        ({"master_url": "http://127.1:8080"}, "which is the machine itself for every machine"),
        ({"master_url": "http://[::]:8080"}, "which is the machine itself for every machine"),
        ({"master_url": "master.example.org"}, "write a whole address"),
        ({"master_url": "https://m\nTENAX_END_OF_STEPS\nid"}, "write an address without blanks and line breaks"),
        ({"master_url": ""}, "master_url is missing"),
        ({"instance_slots": None, "cpu_slots_allowed": True}, "into how many slots the CPU of g5.12xlarge is cut"),
        ({"zones": ["us-east-1a"]}, "zones has us-east-1a, which is no zone of us-west-2: write zones of that region"),
        ({"zones": ["us-west-2"]}, "zones has us-west-2, which is no zone"),
        ({"custom_tags": [{"key": "AWS:team"}]}, "tags cannot be called AWS:team"),
        ({"root_volume_size": 8}, "root_volume_size"),
        ({"instance_typ": "x"}, "instance_typ"),
        ({"custom_tags": [{"key": "tenax-pool"}]}, "tags cannot be called tenax-pool"),
        ({"custom_tags": [{"key": "a"}, {"key": "a"}]}, "tags cannot be called a"),
        ({"max_run": "31d"}, "max_run must be between 1s and 30d"),
        ({"max_run": "30m"}, "max_run is 1800 s and max_agent_starting_period 1200 s"),
        ({"max_run": 24}, "24 has no unit: write 24s, 24m or 24h"),
        ({"orphan_after": "0s"}, "orphan_after must be between 1s and 24h"),
        ({"orphan_busy_after": "25h"}, "orphan_busy_after must be between 1s and 24h"),
        ({"orphan_busy_after": "20m"}, "orphan_busy_after is 1200 s and orphan_after 1800 s: what is busy cannot"),
        ({"startup_script": "#" * 8_701}, "it has 8701 bytes, and 8700 are possible"),
        (
            {"startup_script": "#" * 8_690, "agent_install": {"wheelhouse": "/opt/wheels"}},
            "and 8689 are possible beside",
        ),
        ({"agent_install": {"python": "python3; id"}}, "write the name of a program, or its path, as in python3.12"),
        ({"agent_install": {"index_url": "https://user:secret@index"}}, "write a whole address without a password"),
        ({"agent_install": {"wheelhouse": "wheels"}}, "write an absolute path of the machine, as in /opt/wheels"),
        ({"agent_install": {"index_url": "https://i", "wheelhouse": "/w"}}, "with a wheelhouse no index is asked"),
        ({"rule": "guess"}, "rule"),
        ({"instance_type": None}, "instance_type is missing: write it in provider"),
        ({"offers": [{}, {"image_id": "ami-2"}]}, "offers stand there twice: g5.12xlarge in us-west-2"),
        ({"budget_stops": True}, "write that, too"),
        ({"price": float("inf")}, "price"),
        ({"price": 1, "max_price": float("nan")}, "max_price"),
        ({"price": 1, "budget_per_month": 0}, "budget_per_month"),
        ({"spot_max_price": "2.5"}, "has a spot_max_price and is on demand: write spot: true"),
        ({"spot": True, "spot_max_price": "much"}, "'much' is no price"),
        ({"zones": ["us-west-2a"], "network_interface": {"subnet_id": "s"}}, "write an offer for each subnet"),
    ],
)
def test_what_cannot_work_is_refused_at_the_start(tmp_path: Path, changes: Mapping[str, object], words: str) -> None:
    """Before anything is rented."""
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, **changes)
    assert words in str(refused.value)


def test_a_provider_on_this_machine_may_have_its_master_here_too(tmp_path: Path) -> None:
    """As servers for tests are."""
    settings = read(tmp_path, master_url="http://127.0.0.1:8080", endpoint_url="http://localhost:5000")
    assert settings.endpoint_url == "http://localhost:5000"


def test_offers_have_the_defaults_of_their_pool(tmp_path: Path) -> None:
    """Zone by zone; a pool without any is one offer."""
    one = read(tmp_path)
    assert [each.offer_name for each in one.each_offer()] == ["g5.12xlarge in us-west-2"]
    offers = [{"zones": ["us-west-2a", "us-west-2b"]}, {"instance_type": "p4d.24xlarge", "instance_slots": 8}]
    several = read(tmp_path, offers=offers, price=6).each_offer()
    assert [(each.offer_name, each.instance_slots, each.price) for each in several] == [
        ("g5.12xlarge in us-west-2a", 4, 6.0),
        ("g5.12xlarge in us-west-2b", 4, 6.0),
        ("p4d.24xlarge in us-west-2", 8, 6.0),
    ]
    assert {each.image_id for each in several} == {"ami-03cf127a"}


def test_what_may_be_asked_of_the_provider_need_not_be_written(tmp_path: Path) -> None:
    """Prices and slots; where they are not known yet nothing is rented that needs them."""
    given = {"choose": "cheapest", "max_cost_per_hour": 20, "budget_per_month": 60, "instance_slots": None}
    [offer] = read(tmp_path, **given).each_offer()
    assert (offer.price, offer.instance_slots, offer.may_be_asked) == (None, -1, True)


def test_a_list_price_is_of_its_region_and_on_demand(tmp_path: Path) -> None:
    """With its day and its page; what is not in the table has none."""
    listed = read(tmp_path).list_price
    assert listed is not None
    assert (listed.amount, listed.day.isoformat()) == (5.672, "2025-06-05")
    assert listed.page.startswith("https://aws.amazon.com/")
    others: tuple[dict[str, object], ...] = ({"region": "eu-west-1"}, {"spot": True}, {"instance_type": "m5.large"})
    assert [read(tmp_path, **other).list_price for other in others] == [None] * 3


def test_spot_as_determined_writes_it(tmp_path: Path) -> None:
    """The price is text there; the same type on demand is another offer."""
    spot = read(tmp_path, spot=True, spot_max_price="2.5")
    assert (spot.spot_max_price, spot.each_offer()[0].offer_name) == (2.5, "g5.12xlarge (spot) in us-west-2")
    both = read(tmp_path, offers=[{"spot": True}, {}])
    assert [each.spot for each in both.each_offer()] == [True, False]
