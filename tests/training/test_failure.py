from __future__ import annotations

import signal

import pytest
import torch.distributed as dist

from trainfabric_plan.errors import NotFound, Refused, Unreachable
from trainfabric_training.failure import NodeFault, NoStore, end_by, end_without_word
from trainfabric_training.parallel import Agreed, Ranks
from trainfabric_training.telemetry import End


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("[../gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:40412"),
        RuntimeError("[enforce fail] Read error [127.0.0.1]:2: Connection reset by peer. This may indicate a remote "),
        RuntimeError("Application timeout caused pair closure: Timed out waiting 12000ms for recv operation"),
        RuntimeError("Gloo connectFullMesh failed with [..] Connection refused"),
        dist.DistNetworkError("The client socket has failed to connect to 10.0.0.1:29400"),
        dist.DistStoreError("wait timeout after 300000ms, keys: /job.epoch1/ranks/0"),
        dist.DistBackendError("NCCL error: ncclRemoteError: A call failed possibly due to a network error"),
    ],
)
def test_a_rank_that_lost_others_has_no_reason_of_its_own(error: Exception) -> None:
    end = end_by(error, rank=1, step=4)

    assert (end.status, end.of_others, end.hopeless, end.step) == ("failed", True, False, 4)
    assert end.detail.startswith(f"{type(error).__name__}: {error}")


@pytest.mark.parametrize(
    "error",
    [MemoryError("out of memory"), RuntimeError("loss is not finite"), dist.DistBackendError("ncclInternalError")],
)
def test_a_rank_that_fails_by_itself_says_so(error: Exception) -> None:
    assert end_by(error, rank=1, step=0) == End(status="failed", detail=f"{type(error).__name__}: {error}")


def test_frames_of_cpp_are_left_out() -> None:
    error = RuntimeError("Connection reset by peer\nException raised from recvBytes at Utils.hpp:678\nframe #0: c10")

    assert end_by(error, rank=0, step=1).detail == "RuntimeError: Connection reset by peer"


def test_what_is_wrong_in_the_input_is_hopeless_until_a_step_was_taken() -> None:
    assert end_by(NotFound("no corpus"), rank=0, step=0) == End(status="failed", detail="no corpus", hopeless=True)
    assert not end_by(Refused("another run owns the job"), rank=0, step=3).hopeless


def test_a_service_that_does_not_answer_may_answer_later() -> None:
    assert not end_by(Unreachable("S3 must answer"), rank=0, step=0).hopeless
    assert not end_by(Agreed("S3 must answer", rank=0, passing=True), rank=0, step=0).hopeless


def test_a_fault_of_a_node_is_its_own_and_may_be_none_on_another() -> None:
    assert end_by(NodeFault("no device"), rank=3, step=0) == End(status="failed", detail="no device")


def test_without_a_store_to_meet_in_a_node_is_not_the_reason() -> None:
    assert end_by(NoStore("no store"), rank=3, step=0) == End(status="failed", detail="no store", of_others=True)


TIMEOUT = "[PG ID 0 PG GUID 0(default_pg) Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9)"
REMOTE = "[rank3]:[E1130 12:00:00 ProcessGroupNCCL.cpp:2]   [PG ID 2 Rank 3] NCCL error: ncclRemoteError: a peer"
OWN = "[PG ID 0 PG GUID 0(default_pg) Rank 3] Process group watchdog thread terminated with exception: CUDA error"


@pytest.mark.parametrize("words", [TIMEOUT, REMOTE])
def test_a_rank_that_nccls_watchdog_ended_for_others_says_what_it_printed(words: str) -> None:
    end = end_without_word(3, 77, -signal.SIGABRT, first=3, printed=f"step 1\n{words}\nterminate called")

    detail = f"rank 3 (process 77) was ended by SIGABRT: {words}"
    assert end == End(status="failed", detail=detail, of_others=True)


@pytest.mark.parametrize("printed", ["", OWN, TIMEOUT.replace("Rank 3", "Rank 13"), "Rank 3] free(): invalid pointer"])
def test_a_rank_that_aborted_without_a_word_of_others_is_the_reason_itself(printed: str) -> None:
    end = end_without_word(3, 77, -signal.SIGABRT, first=3, printed=printed)

    assert end == End(status="failed", detail="rank 3 (process 77) was ended by SIGABRT")


def test_of_a_rank_that_something_else_has_killed_the_log_is_no_excuse() -> None:
    end = end_without_word(3, 77, -signal.SIGKILL, first=2, printed=TIMEOUT)

    assert end == End(status="failed", detail="rank 3 (process 77) was ended by SIGKILL")


def test_a_rank_that_its_agent_ended_names_the_one_that_failed_before() -> None:
    end = end_without_word(3, 77, -signal.SIGTERM, first=2, printed="")

    assert end == End(status="failed", detail="ended because rank 2 of this node failed", of_others=True)


def test_of_an_error_that_all_ranks_know_one_is_the_origin() -> None:
    error = Agreed("no commit", rank=2, passing=False)

    assert end_by(error, rank=2, step=0) == End(status="failed", detail="no commit", hopeless=True)
    assert end_by(error, rank=0, step=0) == End(status="failed", detail="no commit", hopeless=True, of_others=True)


@pytest.mark.parametrize(("raised", "passing"), [(Unreachable("x"), True), (NotFound("x"), False)])
def test_ranks_agree_on_whether_an_error_may_pass(raised: Exception, passing: bool) -> None:
    def fail() -> None:
        raise raised

    for call in (Ranks().everywhere, Ranks().each, Ranks().on_first):
        with pytest.raises(Agreed) as caught:
            call(fail)

        assert (caught.value.rank, caught.value.passing) == (0, passing)
