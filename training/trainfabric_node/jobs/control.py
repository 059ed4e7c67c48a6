"""Starting, watching and stopping the jobs of a deployed environment."""

from __future__ import annotations

import contextlib
import re
import time
import uuid
from datetime import timedelta

from trainfabric_node.jobs.code import CodeArchive, keep
from trainfabric_node.jobs.fleet import Fleet, read_deployed
from trainfabric_node.jobs.ledger import JobLedger
from trainfabric_node.jobs.pins import AssetKeeper, Pinning
from trainfabric_node.jobs.records import JOB_NAME_RULE, JobCommand, JobSpec, NodeStatus, Outcome, StopRequest, now
from trainfabric_node.jobs.run_records import RunRecords
from trainfabric_node.jobs.status import NODES_GONE, JobStatus, job_status, lost_coordinator, no_job
from trainfabric_node.store import ObjectMissing, open_store
from trainfabric_plan.deployed import DeployedEnvironment
from trainfabric_plan.errors import NotFound, Refused, TrainfabricError, Unreachable, mistake
from trainfabric_plan.own_command import OwnCommand
from trainfabric_plan.planning import AnyPlan, Plan
from trainfabric_plan.policy import FaultTolerance
from trainfabric_plan.recipes import Recipe

_POLL_S = 0.5
_LAST_WORD_S = 15.0
"""A controller that ends a run gives its own node back as well, and then writes the outcome."""

_STARTING = timedelta(minutes=5)
"""Between the claim of the environment and the request for nodes there are fewer minutes."""

_BY_COMMAND = "by trainfabric job stop"


def connect(environment_name: str, region: str | None = None) -> JobControl:
    """Control of the jobs of a deployed environment, in AWS or in the embedded one (AWS_ENDPOINT_URL).

    Raises:
        NotFound: If it is not deployed.
        Unreachable: If AWS does not answer, or not to these credentials.
    """
    deployed = read_deployed(environment_name, region)
    ledger = JobLedger(open_store(f"s3://{deployed.checkpoint_bucket}/"))
    return JobControl(deployed, ledger, Fleet.of(deployed), Pinning(deployed))


class JobControl:
    """The jobs of one environment."""

    def __init__(self, deployed: DeployedEnvironment, ledger: JobLedger, fleet: Fleet, pinning: Pinning) -> None:
        self.deployed = deployed
        self._ledger = ledger
        self._fleet = fleet
        self._pinning = pinning
        self._asset = AssetKeeper(deployed, ledger.store)
        self._where = f"environment {deployed.name}"

    def start(
        self,
        job: str,
        work: Recipe | OwnCommand,
        plan: AnyPlan,
        data_uri: str,
        *,
        code: CodeArchive | None = None,
        renew: bool = False,
        policy: FaultTolerance | None = None,
        spares: int = 0,
        resume: bool = False,
        from_step: int | None = None,
    ) -> JobSpec:
        """Claims the environment for a run of a job, writes what it is, and asks for its nodes.

        What cannot work is refused before anything is started. A run that holds the environment without any node, and
        none on its way, has failed: nobody is left to end it. The checkpoint to go on from is looked at: its manifest
        is the one that was committed, and each of its parts is there and whole in size. What is in the parts is
        verified by the ranks. If the nodes cannot be asked for, the environment is free again, and its groups launch
        what is deployed.

        A command that is resumed is the one that the job ran last, with its code and image, unless it is to be renewed.

        Args:
            job: Name of the job.
            work: What to train, or somebody else's command.
            plan: On which nodes, and in which layout.
            data_uri: Address of the corpus, without suffix; of a command, whatever it is to be told.
            code: Code of the command.
            renew: Resumes with this command and code, not with those of the job.
            policy: What to do when nodes are lost or come late; the defaults if not given.
            spares: Warm nodes beyond the plan's.
            resume: Goes on from a committed checkpoint of the job.
            from_step: Step of that checkpoint; that of the newest if `None`.

        Raises:
            Refused: If a job is running, or the job has checkpoints and is not to be resumed.
            NotFound: If the job has no such committed checkpoint, an object of it is missing, or the corpus is, or
                what the environment names.
            InvalidInput: If the name is none, the plan is for another environment or for more nodes, the checkpoint
                is damaged, or a step is given and the job is not to be resumed.
            Unreachable: If AWS does not answer, or not to these credentials.
        """
        policy = policy or FaultTolerance()
        self._check(job, work, plan, policy, spares)
        if from_step is not None and not resume:
            raise mistake(self._where, "from-step", "given with resume", f"{from_step} without it", "add --resume")
        self._end_abandoned()
        self._ledger.check_free(self.deployed.name, job)
        self._check_there(data_uri if isinstance(work, Recipe) else None)
        if isinstance(work, OwnCommand):
            self._check_own(job, resume=resume, from_step=from_step)
        elif resume:
            self._check_resumable(job, from_step)
        else:
            self._check_new(job)
        run = self._ledger.next_run(job)
        spec = JobSpec(
            job=job,
            environment=self.deployed.name,
            run=run,
            resume=resume,
            from_step=from_step,
            data=data_uri,
            recipe=work if isinstance(work, Recipe) else None,
            command=self._pinned(job, work, code, again=resume and not renew) if isinstance(work, OwnCommand) else None,
            plan=plan,
            groups=self.deployed.groups,
            policy=policy,
            spares=spares,
            pins=self._pinning.make(job, run),
            created=now(),
            nonce=uuid.uuid4().hex,
        )
        self._claim(spec)
        self._ask_for_nodes(spec)
        return spec

    def status(self, job: str | None = None) -> JobStatus:
        """The status of a job, or of the one that runs or ran last; raises `NotFound` if there is no such job."""
        spec = self._ledger.job(job) if job else self._ledger.newest()
        return self._status(spec) if spec else no_job(self.deployed.name)

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

        The controller ends the run. Where none can, because the coordinator has not come up or is gone, the nodes are
        released at once: no checkpoint would come of waiting.

        Args:
            wait_s: How long the controller may take; 0 returns at once, and it does the rest.
            force: Releases the nodes at once: what was trained since the last checkpoint is lost.

        Raises:
            NotFound: If no job is running.
            Unreachable: If the controller has not ended the run in time.
        """
        spec = self._ledger.current()
        if spec is None:
            raise NotFound(
                f"{self._where}: a job must be running to be stopped, got none; trainfabric job status tells more"
            )
        records = self._ledger.run(spec.job, spec.run)
        records.request_stop(StopRequest(detail=_BY_COMMAND, requested=now()))
        if force:
            self._release(spec, "nodes released by force", patience_s=0)
        elif wait_s > 0 and self._has_controller(records):
            self._wait(records, wait_s)
            self._release(spec, _unattended(records), _LAST_WORD_S)
        elif not self._has_controller(records):
            self._release(spec, _unattended(records), _LAST_WORD_S if records.controller() else 0)
        return self._status(spec)

    def _status(self, spec: JobSpec) -> JobStatus:
        """With the nodes that the fleet has, where these credentials may ask for them."""
        members, abandoned = None, False
        if not self._ledger.run(spec.job, spec.run).outcome():
            with contextlib.suppress(TrainfabricError):
                members = self._fleet.members()
                abandoned = self._is_abandoned(spec)
        return job_status(self._ledger, spec, members, abandoned=abandoned)

    def _is_abandoned(self, spec: JobSpec) -> bool:
        """Whether a run without an outcome has no node any more that could write one."""
        return now() - spec.created > _STARTING and Fleet.of_job(spec, self.deployed.region).is_empty()

    def _end_abandoned(self) -> None:
        holder = self._ledger.current()
        if holder and not self._ledger.run(holder.job, holder.run).outcome() and self._is_abandoned(holder):
            outcome = Outcome(state="failed", detail=NODES_GONE, ended=now())
            self._ledger.run(holder.job, holder.run).conclude(outcome)

    def _claim(self, spec: JobSpec) -> None:
        try:
            self._ledger.claim(spec)
        except TrainfabricError:
            if spec.pins:
                self._pinning.discard(spec.pins)
            raise

    def _ask_for_nodes(self, spec: JobSpec) -> None:
        try:
            self._asset.keep()
            if spec.pins:
                self._pinning.use(spec.pins)
            self._fleet.scale_up(spec.plan.nodes, spec.spares)
        except TrainfabricError as error:
            if spec.pins:
                self._pinning.restore(spec.pins)
            outcome = Outcome(state="failed", detail=f"no nodes: {error}", ended=now())
            self._ledger.run(spec.job, spec.run).conclude(outcome)
            self._ledger.release(spec)
            raise

    def _pinned(self, job: str, own: OwnCommand, code: CodeArchive | None, *, again: bool) -> JobCommand:
        """The command with the code that all nodes of the run get."""
        if again:
            last = self._ledger.job(job).command
            assert last is not None
            return last
        return JobCommand(**own.model_dump(), code=keep(self._ledger.store, job, code) if code else None)

    def _check_own(self, job: str, *, resume: bool, from_step: int | None) -> None:
        """Only the command knows its checkpoints: what it goes on from, and whether there is anything."""
        if from_step is not None:
            rule = "left out for a command, which chooses its checkpoint itself"
            raise mistake(self._where, "from-step", rule, from_step, "remove --from-step")
        if not resume and self._ledger.has_begun(job):
            remedy = "resume it, or choose another name"
            raise Refused(f"{self._where}: job must be a new one, got {job}, which has run; {remedy}")
        if resume and self._ledger.job(job).command is None:
            remedy = "choose another name, or an environment with its recipe"
            raise mistake(self._where, "job to resume", "one that ran a command", job, remedy)

    def _check(self, job: str, work: Recipe | OwnCommand, plan: AnyPlan, policy: FaultTolerance, spares: int) -> None:
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,62}", job):
            raise mistake(self._where, "job", JOB_NAME_RULE, job)
        wanted = f"recipe {work.name}" if isinstance(work, Recipe) else "a command"
        planned = f"recipe {plan.recipe}" if isinstance(plan, Plan) else "a command"
        if plan.environment != self.deployed.name or planned != wanted:
            rule = f"for environment {self.deployed.name} and {wanted}"
            got = f"one for {plan.environment} and {planned.removeprefix('recipe ')}"
            raise mistake(self._where, "plan", rule, got, "plan from the same environment file")
        if plan.nodes > self.deployed.nodes:
            rule = f"at most the {self.deployed.nodes} that are deployed"
            raise mistake(self._where, "nodes of the plan", rule, plan.nodes, "deploy the environment again")
        most = self.deployed.nodes + self.deployed.spares - plan.nodes
        if spares > most:
            rule = f"at most the {most} that are deployed beside {plan.nodes} nodes"
            raise mistake(self._where, "spares", rule, spares, "deploy the environment again")
        if policy.minimum_nodes and policy.minimum_nodes > plan.nodes:
            rule = f"at most the {plan.nodes} of the plan"
            raise mistake(self._where, "minimum nodes", rule, policy.minimum_nodes, "correct fault_tolerance")

    def _check_there(self, data_uri: str | None) -> None:
        """The corpus, if there must be one, the training asset, and the groups."""
        if data_uri is not None:
            self._check_corpus(data_uri)
        self._asset.check()
        self._fleet.members()

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

    def _has_controller(self, records: RunRecords) -> bool:
        controller = records.controller()
        return controller is not None and not lost_coordinator(controller, self._fleet.members())

    def _wait(self, records: RunRecords, wait_s: float) -> None:
        """Until the controller has ended the run, or is gone."""
        patience = time.monotonic() + wait_s
        while not records.outcome():
            if time.monotonic() > patience:
                raise self._silent(records.nodes(), wait_s)
            if not self._has_controller(records):
                return
            time.sleep(_POLL_S)

    def _silent(self, nodes: list[NodeStatus], wait_s: float) -> Unreachable:
        left = [f"{node.instance_id} ({node.state})" for node in nodes if not node.state.ended]
        there = f"none while there are {', '.join(left)}" if left else "none"
        remedy = "wait longer, or stop with force, which loses what was trained since the last checkpoint"
        return Unreachable(f"{self._where}: the run must end within {wait_s:g} s, got {there}; {remedy}")

    def _release(self, spec: JobSpec, detail: str, patience_s: float) -> None:
        """Gives the nodes back; how the run ended is what its controller says within some seconds, or `detail`."""
        records = self._ledger.run(spec.job, spec.run)
        self._fleet.release()
        until = time.monotonic() + patience_s
        while not records.outcome() and time.monotonic() < until:
            time.sleep(_POLL_S)
        records.conclude(Outcome(state="stopped", detail=detail, ended=now()))
        self._ledger.release(spec)


def _unattended(records: RunRecords) -> str:
    if not records.epochs():
        return f"before training began, asked {_BY_COMMAND}"
    return f"asked {_BY_COMMAND}, with no coordinator that could have saved a checkpoint"
