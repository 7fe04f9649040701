"""Rules that need one look at the whole queue."""

from typing import Any

from tests.unit.rules.kit import NOW, Case, unknown

DAY = 86_400_000


def team(**more: Any) -> dict[str, Any]:
    return {"job": {"team": "vision"}, "team": more}


def hours(owned: float, borrowed: float, period: str = "week", status: str = "RUNNABLE") -> dict[str, Any]:
    used = {"owned_gpu_hours": {period: owned}, "borrowed_gpu_hours": {period: borrowed}}
    return {"job": {"team": "vision", "status": status}, "team": used}


TABLES = {
    "max-running-instances-per-team": [
        Case("as many as allowed", {"limit": 8}, team(running_up_to_job=8, running_instances=12), None),
        Case(
            "one more",
            {"limit": 8},
            team(running_up_to_job=9),
            "brings team vision to 9 running instances, and a team may have 8 at once:"
            " let another job end before you start the next",
            {"instances": 9, "limit": 8, "team": "vision"},
        ),
        Case("it waits", {"limit": 8}, team(running_instances=12), None),
        Case("no team", {"limit": 8}, {"job": {}}, None),
        Case("outside a sweep", {"limit": 8}, {"job": {"team": "vision"}}, unknown("team")),
        Case("team not known", {"limit": 8}, {"job": {"tags": None}}, unknown("team")),
    ],
    "max-running-instances-per-user": [
        Case(
            "as many as allowed",
            {"limit": 2},
            {"job": {"user": "ana"}, "user": {"running_up_to_job": 2}},
            None,
        ),
        Case(
            "one more",
            {"limit": 2},
            {"job": {"user": "ana"}, "user": {"running_up_to_job": 3}},
            "brings user ana to 3 running instances, and a user may have 2 at once:"
            " let another job end before you start the next",
            {"instances": 3, "limit": 2, "user": "ana"},
        ),
        Case("it waits", {"limit": 2}, {"job": {"user": "ana"}, "user": {"running_instances": 9}}, None),
        Case("no user", {"limit": 2}, {"job": {}}, None),
        Case("outside a sweep", {"limit": 2}, {"job": {"user": "ana"}}, unknown("user")),
        Case("user not known", {"limit": 2}, {"job": {"tags": None}}, unknown("user")),
    ],
    "max-queued-jobs-per-team": [
        Case("as many as allowed", {"limit": 3}, team(queued_up_to_job=3, queued_jobs=9), None),
        Case(
            "one more",
            {"limit": 3},
            team(queued_up_to_job=4),
            "is waiting job number 4 of team vision, and a team may have 3: submit it when"
            " others have started",
            {"place": 4, "limit": 3, "team": "vision"},
        ),
        Case("it runs", {"limit": 3}, team(queued_jobs=9), None),
        Case("no team", {"limit": 3}, {"job": {}}, None),
        Case("outside a sweep", {"limit": 3}, {"job": {"team": "vision"}}, unknown("team")),
    ],
    "gpu-hour-budget": [
        Case("nearly used", {"total": 100}, hours(60, 39.9), None),
        Case(
            "used up to the hour",
            {"total": 100},
            hours(60, 40),
            "belongs to team vision, which has used 100.0 of 100 GPU-hours of 2026-W49:"
            " the next week begins 2026-12-07 00:00 UTC",
            {"total": {"used": 100.0, "limit": 100.0}},
        ),
        Case(
            "owned and borrowed apart",
            {"owned": 50, "borrowed": 12.5, "total": 1000, "period": "month"},
            hours(60, 40, "month"),
            "belongs to team vision, which has used 60.0 of 50 owned GPU-hours and 40.0 of"
            " 12.5 borrowed GPU-hours"
            " of 2026-11: the next month begins 2026-12-01 00:00 UTC",
        ),
        Case("borrowing little", {"borrowed": 50}, hours(900, 40), None),
        Case(
            "nothing may be borrowed",
            {"borrowed": 0, "period": "day"},
            hours(0, 0, "day") | {"now": NOW + DAY},
            "belongs to team vision, which has used 0.0 of 0 borrowed GPU-hours of 2026-12-01:"
            " the next day begins 2026-12-02 00:00 UTC",
        ),
        Case("no team", {"total": 1}, {"job": {}}, None),
        Case("outside a sweep", {"total": 1}, {"job": {"team": "vision"}}, unknown("team")),
        Case(
            "another period is counted",
            {"total": 1},
            hours(9, 9, "day"),
            unknown("team.owned_gpu_hours, team.borrowed_gpu_hours"),
        ),
    ],
}
