"""`det template`: partial configurations below what is submitted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

from tests.compat.client import Det, RealClient, Sdk
from tests.compat.experiments import CONFIG


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_templates_are_made_shown_changed_and_removed(det: Det, tmp_path: Path) -> None:
    """With every verb, the older one too."""
    first = written(tmp_path / "first.yaml", "max_restarts: 3\n")
    second = written(tmp_path / "second.yaml", "max_restarts: 4\n")
    assert "Created template" in det("template", "create", "tpl-verbs", first).out
    assert det("template", "create", "tpl-verbs", first, check=False).code != 0
    assert "max_restarts: 3" in det("template", "describe", "tpl-verbs").out
    assert "tpl-verbs" in det("template", "list").out
    assert "max_restarts: 3" in det("tpl", "list", "--details").out
    assert "Updated template" in det("template", "set-value", "config", "tpl-verbs", second).out
    assert "max_restarts: 4" in det("template", "describe", "tpl-verbs").out
    det("template", "set", "tpl-verbs", first)
    assert "max_restarts: 3" in det("template", "describe", "tpl-verbs").out
    det("template", "set", "tpl-set", second)
    assert "max_restarts: 4" in det("template", "describe", "tpl-set").out
    for name in ("tpl-verbs", "tpl-set"):
        assert "Removed template" in det("template", "remove", name).out
        assert det("template", "describe", name, check=False).code != 0


def test_a_template_belongs_to_a_workspace(det: Det, admin: RealClient, tmp_path: Path) -> None:
    """Named when it is made; somebody else's is not changed."""
    file = written(tmp_path / "a.yaml", "debug: true\n")
    admin.det("template", "create", "tpl-others", file, "--workspace-name", "Uncategorized")
    assert "Uncategorized" in next(line for line in det("template", "list").out.splitlines() if "tpl-others" in line)
    assert "belongs to someone else" in det("template", "remove", "tpl-others", check=False).err
    admin.det("template", "remove", "tpl-others")


def test_a_wrong_template_is_refused(det: Det, tmp_path: Path) -> None:
    """With the key that was meant."""
    file = written(tmp_path / "a.yaml", "enviroment: {}\n")
    assert "did you mean 'environment'?" in det("template", "create", "tpl-wrong", file, check=False).err


def test_an_experiment_is_made_over_a_template(det: Det, sdk: Sdk, tmp_path: Path, code: Path) -> None:
    """What the experiment does not say comes from the template; what it says itself counts."""
    template = "max_restarts: 9\ndescription: from the template\nenvironment: {environment_variables: [A=template]}\n"
    det("template", "create", "tpl-below", written(tmp_path / "t.yaml", template))
    own = {**CONFIG, "description": "its own"}
    del own["max_restarts"]
    file = written(tmp_path / "config.yaml", json.dumps(own))
    done = det("e", "create", file, code, "--paused", "--template", "tpl-below")
    number = int(done.out.split("Created experiment ")[1].split()[0])
    config = cast("dict[str, object]", sdk("result = client.get_experiment(number).config", number=number))
    assert (config["max_restarts"], config["description"]) == (9, "its own")
    assert cast("dict[str, dict[str, list[str]]]", config["environment"])["environment_variables"]["cpu"] == [
        "A=********"
    ]
    det("template", "remove", "tpl-below")
    det("e", "kill", number)
