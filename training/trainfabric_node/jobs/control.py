"""Starting, watching and stopping the jobs of a deployed environment."""

from __future__ import annotations

import re
import time
import uuid

from trainfabric_node.jobs.fleet import Fleet, read_deployed
from trainfabric_node.jobs.ledger import JobLedger
from trainfabric_node.jobs.records import (
    JOB_NAME_RULE,
    JobSpec,
    NodeState,
    NodeStatus,
    Outcome,
    StopRequest,
    now,
)
from trainfabric_node.jobs.run_records import RunRecords
from trainfabric_node.jobs.status import JobStatus, job_status, no_job
from trainfabric_node.store import ObjectMissing, open_store
from trainfabric_plan.contract import Role
from trainfabric_plan.deployed import DeployedEnvironment
from trainfabric_plan.errors import NotFound, Refused, TrainfabricError, Unreachable, mistake
from trainfabric_plan.planning import Plan
from trainfabric_plan.recipes import Recipe

_POLL_S = 0.5
_COORDINATOR_S = 15.0
"""How long the coordinator may take to conclude a run whose nodes have all ended."""


def connect(environment_name: str, region: str | None = None) -> JobControl:
    """Control of the jobs of a deployed environment, in AWS or in the embedded one (AWS_ENDPOINT_URL).

    Raises:
        NotFound: If it is not deployed.
        Unreachable: If AWS does not answer, or not to these credentials.
    """
    deployed = read_deployed(environment_name, region)
    return JobControl(deployed, JobLedger(open_store(f"s3://{deployed.checkpoint_bucket}/")), Fleet(deployed))


class JobControl:
    """The jobs of one environment."""

    def __init__(self, deployed: DeployedEnvironment, ledger: JobLedger, fleet: Fleet) -> None:
        self.deployed = deployed
        self._ledger = ledger
        self._fleet = fleet
        self._where = f"environment {deployed.name}"

    def start(
        self,
        job: str,
        recipe: Recipe,
        plan: Plan,
        data_uri: str,
        *,
        resume: bool = False,
        from_step: int | None = None,
    ) -> JobSpec:
        """Claims the environment for a run of a job, writes what it is, and asks for its nodes.

        The checkpoint to go on from is looked at first: its manifest is the one that was committed, and each of its
        parts is there and whole in size. What is in the parts is verified by the ranks. If the nodes cannot be asked
        for, the environment is free again.

        Args:
            resume: Goes on from a committed checkpoint of the job.
            from_step: Step of that checkpoint; that of the newest if `None`.

        Raises:
            Refused: If a job is running, or the job has checkpoints and is not to be resumed.
            NotFound: If the job has no such committed checkpoint, an object of it is missing, or the corpus is.
            InvalidInput: If the name is none, the plan is for another environment or for more nodes, the checkpoint
                is damaged, or a step is given and the job is not to be resumed.
            Unreachable: If AWS does not answer, or not to these credentials.
        """
        self._check(job, recipe, plan)
        if from_step is not None and not resume:
            raise mistake(self._where, "from-step", "given with resume", f"{from_step} without it", "add --resume")
        self._ledger.check_free(self.deployed.name, job)
        self._check_corpus(data_uri)
        if resume:
            self._check_resumable(job, from_step)
        else:
            self._check_new(job)
        spec = JobSpec(
            job=job,
            environment=self.deployed.name,
            run=self._ledger.next_run(job),
            resume=resume,
            from_step=from_step,
            data=data_uri,
            recipe=recipe,
            plan=plan,
            created=now(),
            nonce=uuid.uuid4().hex,
        )
        self._ledger.claim(spec)
        try:
            self._fleet.scale_up(plan.nodes)
        except TrainfabricError as error:
            self._ledger.run(job, spec.run).conclude(Outcome(state="failed", detail=f"no nodes: {error}", ended=now()))
            self._ledger.release(spec)
            raise
        return spec

    def status(self, job: str | None = None) -> JobStatus:
        """The status of a job, or of the one that runs or ran last; raises `NotFound` if there is no such job."""
        spec = self._ledger.job(job) if job else self._ledger.newest()
        return job_status(self._ledger, spec) if spec else no_job(self.deployed.name)

    def logs(self, job: str | None = None, node: str | None = None) -> str:
        """What the trainers of a job's newest run printed, of all nodes (each under its name) or of one.

        Raises:
            NotFound: If there is no such job, or the node has published no log.
        """
        spec = self._ledger.job(job) if job else self._ledger.newest()
        if spec is None:
            raise NotFound(f"{self._where}: job must be given, got none; no job has been started")
        records = self._ledger.run(spec.job, spec.run)
        if node is None:
            return "\n".join(f"==> {name} <==\n{records.log(name)}" for name in records.logging_nodes())
        try:
            return records.log(node)
        except ObjectMissing:
            there = ", ".join(records.logging_nodes()) or "none"
            raise NotFound(
                f"{self._where}: node must have published a log, got {node}; those that have: {there}"
            ) from None

    def stop(self, wait_s: float = 0.0, force: bool = False) -> JobStatus:
        """Asks the running job to end with a checkpoint; with `wait_s`, sees to it that its nodes are gone.

        Where nobody is left who could end the run, as when no node has come up, its nodes are released at once.

        Args:
            wait_s: How long its nodes may take; 0 returns at once, and the coordinator does the rest.
            force: Releases the nodes at once: what was trained since the last checkpoint is lost.

        Raises:
            NotFound: If no job is running.
            Unreachable: If the nodes have not reported the end in time.
        """
        spec = self._ledger.current()
        if spec is None:
            raise NotFound(
                f"{self._where}: a job must be running to be stopped, got none; trainfabric job status tells more"
            )
        records = self._ledger.run(spec.job, spec.run)
        records.request_stop(StopRequest(reason="asked", detail="by trainfabric job stop", requested=now()))
        if force:
            self._conclude(spec, Outcome(state="stopped", detail="nodes released by force", ended=now()))
        elif _is_abandoned(records.nodes()):
            self._conclude(
                spec,
                Outcome(state="stopped", detail="before training began, asked by trainfabric job stop", ended=now()),
            )
        elif wait_s > 0:
            self._wait(records, wait_s)
            self._conclude(
                spec,
                Outcome(state="stopped", detail="before training began, asked by trainfabric job stop", ended=now()),
            )
        return job_status(self._ledger, spec)

    def _check(self, job: str, recipe: Recipe, plan: Plan) -> None:
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,62}", job):
            raise mistake(self._where, "job", JOB_NAME_RULE, job)
        if plan.environment != self.deployed.name or plan.recipe != recipe.name:
            rule = f"for environment {self.deployed.name} and recipe {recipe.name}"
            got = f"one for {plan.environment} and {plan.recipe}"
            raise mistake(self._where, "plan", rule, got, "plan from the same environment file")
        if plan.nodes > self.deployed.nodes:
            rule = f"at most the {self.deployed.nodes} that are deployed"
            raise mistake(self._where, "nodes of the plan", rule, plan.nodes, "deploy the environment again")

    def _check_corpus(self, data_uri: str) -> None:
        folder, _, name = data_uri.rpartition("/")
        try:
            open_store(folder).size(f"{name}.json")
        except ObjectMissing:
            remedy = f"write it with python -m trainfabric_training.data prepare --output {data_uri}"
            raise NotFound(f"{self._where}: corpus must be a prepared one, got none at {data_uri}; {remedy}") from None

    def _check_new(self, job: str) -> None:
        if self._ledger.has_checkpoint_objects(job):
            remedy = "resume it, or choose another name"
            raise Refused(f"{self._where}: job must be a new one, got {job}, which has checkpoints; {remedy}")

    def _check_resumable(self, job: str, from_step: int | None) -> None:
        checkpoints = self._ledger.checkpoints(job)
        commit = checkpoints.newest()
        if commit is None:
            remedy = "start it without resume, or under another name if it failed before its first checkpoint"
            raise NotFound(
                f"{self._where}: job to resume must have a committed checkpoint, got none of {job}; {remedy}"
            )
        if from_step is not None:
            commit = checkpoints.at_step(from_step)
        checkpoints.open(commit).check_complete()

    def _wait(self, records: RunRecords, wait_s: float) -> None:
        """Until the coordinator has concluded the run, or nobody is left who could."""
        patience = time.monotonic() + wait_s
        while not records.outcome():
            nodes = records.nodes()
            left = [node for node in nodes if not node.state.ended]
            if _is_abandoned(nodes):
                return
            if not left:
                patience = min(patience, time.monotonic() + _COORDINATOR_S)
            if time.monotonic() > patience:
                if left:
                    raise self._silent(left, wait_s)
                return
            time.sleep(_POLL_S)

    def _silent(self, left: list[NodeStatus], wait_s: float) -> Unreachable:
        names = ", ".join(f"{node.instance_id} ({node.state})" for node in left)
        remedy = "wait longer, or stop with force, which loses what was trained since the last checkpoint"
        return Unreachable(
            f"{self._where}: nodes must report the end within {wait_s:g} s, got none of {names}; {remedy}"
        )

    def _conclude(self, spec: JobSpec, outcome: Outcome) -> None:
        self._fleet.release()
        self._ledger.run(spec.job, spec.run).conclude(outcome)
        self._ledger.release(spec)


def _is_abandoned(nodes: list[NodeStatus]) -> bool:
    """Whether no coordinator has come up, without which nobody trains, or all nodes have ended a while ago."""
    if all(node.role is Role.WORKER and node.state is not NodeState.RUNNING for node in nodes):
        return True
    since = now() - max(node.updated for node in nodes)
    return all(node.state.ended for node in nodes) and since.total_seconds() > _COORDINATOR_S
