"""The example's pool is the one that the demo plays in, and its policy fits it."""

from typing import Any

import yaml
from sharewarden_tools.stories.three_team import SHARES
from sharewarden_tools.template import TEMPLATE, load_template, resolve

FOLDER = TEMPLATE.parent / "examples" / "three-team-pool"
POOL = load_template(FOLDER / "pool.yaml")


def as_request(properties: dict[str, Any]) -> Any:
    """Members of CloudFormation as those of the API, which begin in lower case."""
    if isinstance(properties, dict):
        return {key[0].lower() + key[1:]: as_request(value) for key, value in properties.items()}
    return [as_request(each) for each in properties] if isinstance(properties, list) else properties


def test_the_shares_are_those_of_the_story() -> None:
    plain = POOL | {"Resources": {k: v for k, v in POOL["Resources"].items() if k not in ("Queue", "Pool")}}
    shares = {
        name: resource["Properties"] | {"JobQueue": "the queue"}
        for name, resource in plain["Resources"].items()
        if resource["Type"] == "AWS::Batch::QuotaShare"
    }
    resolved = resolve(
        plain | {"Resources": {k: {"Type": "Share", "Properties": v} for k, v in shares.items()}}, {}
    )
    requests = [as_request(each["Properties"]) for each in resolved.values()]
    assert requests == [share.request() | {"jobQueue": "the queue"} for share in SHARES]


def test_the_policy_names_the_queue_and_every_share() -> None:
    policy = yaml.safe_load((FOLDER / "policy.yaml").read_text())
    ((queue, rules),) = policy["queues"].items()
    assert queue == POOL["Parameters"]["QueueName"]["Default"]
    assert set(rules["shares"]) == {share.name for share in SHARES}
