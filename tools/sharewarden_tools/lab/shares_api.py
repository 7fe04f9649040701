"""Operations on quota shares (quota-shares.html, create-quota-shares.html)."""

from __future__ import annotations

from collections.abc import Callable

from . import checks
from .book import UNLIMITED
from .errors import client_error
from .lifecycle import Lifecycle
from .model import JobQueue, QuotaShare, limits_by_unit
from .registry import Registry, refuse_duplicate, refuse_more_than
from .views import present
from .world import Json, World

MAX_SHARES = 20  # per queue (quota-shares.html)
STRATEGIES = ("RESERVE", "LEND", "LEND_AND_BORROW")


class SharesApi:
    def __init__(self, world: World, registry: Registry, lifecycle: Lifecycle) -> None:
        self._world = world
        self._registry = registry
        self._state = registry.state
        self._lifecycle = lifecycle

    def operations(self) -> dict[str, Callable[[Json], Json]]:
        return {
            "CreateQuotaShare": self.create_quota_share,
            "DescribeQuotaShare": self.describe_quota_share,
            "UpdateQuotaShare": self.update_quota_share,
            "ListQuotaShares": self.list_quota_shares,
            "DeleteQuotaShare": self.delete_quota_share,
        }

    def create_quota_share(self, params: Json) -> Json:
        checks.require(params, "quotaShareName", "capacityLimits", "resourceSharingConfiguration")
        checks.require(params, "preemptionConfiguration")
        queue = self._registry.queue(params)
        name = checks.name(params["quotaShareName"], "quotaShareName")
        arn = f"{queue.arn}/quota-share/{name}"
        refuse_duplicate(self._state.shares, arn)
        refuse_more_than(MAX_SHARES, queue.shares, "quota shares per job queue")
        share = QuotaShare(
            name=name,
            arn=arn,
            queue_arn=queue.arn,
            capacity_limits=checks.capacity_limits(params["capacityLimits"]),
            sharing=_sharing(params["resourceSharingConfiguration"]),
            preemption=_in_share(params["preemptionConfiguration"]),
            state=checks.state(params),
            tags=checks.tags(params.get("tags")),
        )
        queue.shares[name] = self._state.shares[arn] = share
        self._apply(queue, share)
        return {"quotaShareName": name, "quotaShareArn": arn}

    def describe_quota_share(self, params: Json) -> Json:
        share = self._share(params)
        return {**_share_detail(share), "tags": dict(share.tags)}

    def list_quota_shares(self, params: Json) -> Json:
        shown, token = checks.page(enumerate(self._registry.queue(params).shares.values()), params)
        return present({"quotaShares": [_share_detail(share) for share in shown], "nextToken": token})

    def update_quota_share(self, params: Json) -> Json:
        """Members that are left out stay as they are; lowered limits can preempt at once."""
        share = self._share(params)
        limits, sharing, preemption = share.capacity_limits, share.sharing, share.preemption
        if "capacityLimits" in params:
            limits = self._new_limits(share, checks.capacity_limits(params["capacityLimits"]))
        if "resourceSharingConfiguration" in params:
            sharing = _sharing(params["resourceSharingConfiguration"])
        if "preemptionConfiguration" in params:
            preemption = _in_share(params["preemptionConfiguration"])
        share.state = checks.state(params, share.state)
        share.capacity_limits, share.sharing, share.preemption = limits, sharing, preemption
        self._apply(self._state.queues[share.queue_arn], share)
        return {"quotaShareName": share.name, "quotaShareArn": share.arn}

    def _new_limits(self, share: QuotaShare, given: list[Json]) -> list[Json]:
        if self._world.options.limits_replace:
            return given
        merged = limits_by_unit([*share.capacity_limits, *given])
        return checks.capacity_limits(
            [{"maxCapacity": n, "capacityUnit": unit} for unit, n in merged.items()]
        )

    def delete_quota_share(self, params: Json) -> Json:
        """Needs DISABLED; ends all its jobs, then the share is gone (API_DeleteQuotaShare)."""
        share = self._share(params)
        if share.state != "DISABLED":
            raise client_error("The quota share must be DISABLED before it can be deleted.")
        if share.status == "DELETING":
            return {}
        share.status = "DELETING"
        queue = self._state.queues[share.queue_arn]
        for job in queue.open_jobs(share.name):
            self._lifecycle.terminate(job, "Quota share deleted")
        self._world.after(0, lambda: self._remove_share(queue, share))
        return {}

    def _remove_share(self, queue: JobQueue, share: QuotaShare) -> None:
        if queue.open_jobs(share.name):
            self._world.after(self._world.options.notice_delay_ms, lambda: self._remove_share(queue, share))
            return
        queue.shares.pop(share.name)
        self._state.shares.pop(share.arn, None)  # its queue may have gone first
        queue.pool.remove_share(share.name)
        self._lifecycle.request_pass(queue)

    def _apply(self, queue: JobQueue, share: QuotaShare) -> None:
        queue.pool.configure_share(share.name, share.rules())
        self._lifecycle.request_pass(queue)

    def _share(self, params: Json) -> QuotaShare:
        checks.require(params, "quotaShareArn")
        share = self._state.shares.get(params["quotaShareArn"])
        if share is None:
            raise client_error(f"Quota share {params['quotaShareArn']} does not exist.")
        return share


def _sharing(configuration: Json) -> Json:
    """borrowLimit goes with LEND_AND_BORROW only; unset it means no limit."""
    checks.require(configuration, "strategy")
    strategy = checks.one_of(configuration["strategy"], STRATEGIES, "strategy")
    limit = configuration.get("borrowLimit")
    if strategy != "LEND_AND_BORROW":
        if limit is not None:
            raise client_error("borrowLimit can only be set with the strategy LEND_AND_BORROW.")
        return {"strategy": strategy}
    chosen = UNLIMITED if limit is None else checks.within(limit, UNLIMITED, 2**31 - 1, "borrowLimit")
    return {"strategy": strategy, "borrowLimit": chosen}


def _in_share(configuration: Json) -> Json:
    checks.require(configuration, "inSharePreemption")
    return {
        "inSharePreemption": checks.one_of(
            configuration["inSharePreemption"], checks.STATES, "inSharePreemption"
        )
    }


def _share_detail(share: QuotaShare) -> Json:
    return {
        "quotaShareName": share.name,
        "quotaShareArn": share.arn,
        "jobQueueArn": share.queue_arn,
        "capacityLimits": share.capacity_limits,
        "resourceSharingConfiguration": share.sharing,
        "preemptionConfiguration": share.preemption,
        "state": share.state,
        "status": share.status,
    }
