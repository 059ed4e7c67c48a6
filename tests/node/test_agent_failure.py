"""The outputs are those of torch elastic 2.13 on two nodes, shortened."""

from __future__ import annotations

import pytest

from trainfabric_node.agent.failure import is_of_others, why_it_failed

LOST = (
    "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:13463: "
    "Connection reset by peer. This is typically caused by a remote worker hanging or bugs in the application."
)
LOST_RANK = f"""\
[rank2]: Traceback (most recent call last):
[rank2]:   File "/app/trainer.py", line 11, in <module>
[rank2]:     work.wait()
[rank2]: {LOST}
"""
CLOSING = """\
W1130 18:18:40.554000 14867 torch/distributed/elastic/multiprocessing/api.py:1028] Sending process 14872 closing signal SIGTERM
"""  # noqa: E501
REPORT = """\
E1130 18:18:40.619000 14867 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: CODE) local_rank: 1 (pid: 14873) of binary: python
Traceback (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main
  File "/site-packages/torch/distributed/run.py", line 1032, in <module>
    main()
  File "/site-packages/torch/distributed/launcher/api.py", line 383, in launch_agent
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError: 
============================================================
trainfabric_training FAILED
------------------------------------------------------------
Failures:
[1]:
  host      : localhost
  exitcode  : -15 (pid: 14872)  (SIGTERM)
  traceback : Signal 15 (SIGTERM) received by PID 14872
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  host      : localhost
  exitcode  : CODE (pid: 14873)
============================================================
"""  # noqa: E501, W291
STORE_LOST = """\
[W1130 18:18:41.701794047 TCPStore.cpp:138] [c10d] recvValueWithTimeout failed on SocketImpl(fd=3): Failed to recv
Exception raised from recvBytes at /pytorch/torch/csrc/distributed/c10d/Utils.hpp:787 (most recent call first):
frame #0: c10::Error::Error() + 0x9d (0x7f053eb79b8d in libc10.so)
<omitting python frames>

W1130 18:18:41.512000 14866 torch/distributed/elastic/rendezvous/dynamic_rendezvous.py:1298] The node has failed
Traceback (most recent call last):
  File "/site-packages/torch/distributed/elastic/rendezvous/c10d_rendezvous_backend.py", line 114, in _call_store
    return getattr(self._store, store_op)(*args, **kwargs)
torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was likely closed.

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/site-packages/torch/distributed/run.py", line 1032, in <module>
    main()
torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed.
"""
NEVER_MET = """\
Traceback (most recent call last):
  File "/site-packages/torch/distributed/run.py", line 1032, in <module>
    main()
torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError
"""
NO_STORE = """\
Traceback (most recent call last):
  File "/app/trainfabric_training/launch/server.py", line 126, in _become_agent
    status = run_agent(start, launcher)
  File "/site-packages/torch/distributed/launcher/api.py", line 383, in launch_agent
torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while trying to connect to (10.0.0.5, 29400).
"""  # noqa: E501
PROGRESS = "trainer: start of tiny_cpu: 8 ranks on cpu, deepspeed\ntrainer: step 1 of 40  loss 8.3\n"
BUG = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "/app/trainer.py", line 3, in <module>
[rank1]:     1 / 0
[rank1]: ZeroDivisionError: division by zero
"""


@pytest.mark.parametrize("before", ["", PROGRESS], ids=["silent", "progress"])
@pytest.mark.parametrize("after", ["", LOST_RANK], ids=["alone", "lost"])
def test_what_a_rank_said_is_the_reason_and_nothing_around_it(before: str, after: str) -> None:
    said = "part 3 must have CRC32C 1, got 2\n"
    output = before + said + after + CLOSING + REPORT.replace("CODE", "2")

    assert why_it_failed(output) == "part 3 must have CRC32C 1, got 2"
    assert not is_of_others(output)


def test_a_traceback_of_a_rank_is_a_reason() -> None:
    output = LOST_RANK + BUG + CLOSING + REPORT.replace("CODE", "1")

    assert why_it_failed(output) == BUG.strip()


def test_a_rank_that_a_signal_ended_is_a_reason() -> None:
    output = PROGRESS + LOST_RANK + CLOSING + REPORT.replace("CODE", "-9")

    assert why_it_failed(output) == "local rank 1 was ended by signal 9"


def test_an_error_of_torch_elastic_itself_is_a_reason() -> None:
    assert why_it_failed(NEVER_MET) == "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError"


@pytest.mark.parametrize(
    ("output", "others"),
    [
        ("", False),
        (PROGRESS + CLOSING + REPORT.replace("CODE", "2"), False),
        (CLOSING + REPORT.replace("CODE", "-15"), False),
        (LOST_RANK + CLOSING + REPORT.replace("CODE", "1"), True),
        (LOST_RANK + CLOSING + STORE_LOST, True),
        (NO_STORE, True),
    ],
    ids=["nothing", "refused elsewhere", "terminated", "lost", "lost with the store", "no store"],
)
def test_a_node_without_a_reason_of_its_own_may_have_lost_others(output: str, others: bool) -> None:
    assert why_it_failed(output) == ""
    assert is_of_others(output) is others


def test_only_the_last_lines_of_a_long_reason_are_told() -> None:
    output = "".join(f"line {number}\n" for number in range(100))

    assert why_it_failed(output).splitlines() == [f"line {number}" for number in range(85, 100)]
