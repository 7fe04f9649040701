"""Rules about tags, teams and SLA classes."""

from tests.unit.rules.kit import Case, unknown

TABLES = {
    "required-tags": [
        Case("all there", {"tags": ["team"]}, {"job": {"tags": {"team": "a"}}}, None),
        Case(
            "one is missing",
            {"tags": ["team", "project"]},
            {"job": {"tags": {"team": "a"}}},
            "lacks 1 required tag: project (missing); give them when you submit",
            {"tags": {"project": "missing"}},
        ),
        Case(
            "a blank one is none",
            {"tags": ["team", "project"]},
            {"job": {"tags": {"team": " "}}},
            "lacks 2 required tags: team (empty), project (missing); give them when you submit",
        ),
        Case(
            "one that makes no sense",
            {"tags": ["deadline"]},
            {"job": {"tags": {"deadline": "soon"}, "odd_tags": {"deadline": "is not a time"}}},
            "lacks 1 required tag: deadline (is not a time); give them when you submit",
        ),
        Case(
            "an odd one that is not required",
            {"tags": ["team"]},
            {"job": {"tags": {"team": "a", "deadline": "soon"}, "odd_tags": {"deadline": "is not a time"}}},
            None,
        ),
        Case("tags not read", {"tags": ["team"]}, {"job": {"tags": None}}, unknown("job.tags")),
    ],
    "odd-tags": [
        Case("none is odd", {}, {"job": {"tags": {"deadline": "2026-12-01T00:00:00Z"}}}, None),
        Case(
            "two are",
            {},
            {"job": {"odd_tags": {"sla": "is no class", "deadline": "is not a time"}}},
            "has tags that are ignored because they make no sense (deadline is not a time; sla is no class)",
        ),
        Case("tags not read", {}, {"job": {"tags": None}}, unknown("job.tags")),
    ],
    "no-team": [
        Case("the share's team", {}, {"job": {"team": "vision", "tags": None}}, None),
        Case(
            "none",
            {},
            {"job": {}},
            "is shown under (no team), as its share belongs to none and it has no team tag:"
            " submit it with one",
        ),
        Case("tags not read", {}, {"job": {"tags": None}}, unknown("job.tags")),
    ],
    "conflicting-team": [
        Case("they agree", {}, {"job": {"team": "nlp", "tag_team": "nlp"}}, None),
        Case("no tag", {}, {"job": {"team": "nlp"}}, None),
        Case(
            "they do not",
            {},
            {"job": {"team": "nlp", "tag_team": "vision", "share": "team-nlp"}},
            "says team vision in its tag, and counts for nlp, to which share team-nlp belongs:"
            " correct the tag, or submit it to a share of vision",
            {"tag": "vision", "team": "nlp"},
        ),
        Case("tags not read", {}, {"job": {"team": "nlp", "tags": None}}, unknown("job.tags")),
    ],
    "sla-not-granted": [
        Case("it asks for none", {}, {"job": {}}, None),
        Case("granted", {}, {"job": {"sla": "gold", "team": "nlp"}, "sla": {"granted": True}}, None),
        Case(
            "not granted",
            {},
            {"job": {"sla": "gold", "team": "nlp"}, "sla": {"granted": False}},
            "asks for SLA class gold, and team nlp is not granted it: ask the platform team, or leave it out",
            {"sla": "gold"},
        ),
        Case(
            "no such class",
            {},
            {"job": {"sla": "golden", "team": "nlp"}},
            "asks for SLA class golden, and the policy has no such class: correct the tag",
        ),
        Case(
            "no team",
            {},
            {"job": {"sla": "gold"}, "sla": {}},
            "asks for SLA class gold, and it belongs to no team that could be granted one:"
            " give it a team tag",
        ),
        Case(
            "grant not known", {}, {"job": {"sla": "gold", "team": "nlp"}, "sla": {}}, unknown("sla.granted")
        ),
        Case("tags not read", {}, {"job": {"tags": None}}, unknown("job.tags")),
    ],
}
