"""What processes agree on: three real ones, which torchrun starts, each print what they are told."""

import os
import subprocess
import sys
import textwrap

import pytest
import torch

from gpt.processes import Processes

# One write each: lines of several processes that come in pieces would stand within one another.
SCRIPT = """
    import os
    from gpt.config import UserError
    from gpt.processes import joined
    import torch

    def turn():
        os.write(2, f"turn {processes.rank}\\n".encode())
        return processes.rank

    def fail():
        raise UserError("mistaken")

    with joined("cpu") as processes:
        me = processes.rank
        said = [
            processes.size,
            processes.leads,
            processes.told(me + 5),
            processes.largest(me, -me),
            processes.total(torch.tensor([me, 1.0])).tolist(),
            processes.told_tensor(torch.full((2,), me)).tolist(),
            processes.led(lambda: me + 7),
            processes.in_turn(turn),
        ]
        for way in (processes.led, processes.in_turn):
            try:
                way(fail if me == 0 else lambda: 1)
            except UserError as error:
                said.append(str(error))
        os.write(2, f"{me}: {said}\\n".encode())
"""


@pytest.fixture(scope="module")
def told():
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=3", "--no-python"]
    script = [sys.executable, "-c", textwrap.dedent(SCRIPT)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *launcher, *script], capture_output=True, text=True, env=environment, check=True
    )
    return [line for line in done.stderr.splitlines() if line.startswith(("turn", "0:", "1:", "2:"))]


@pytest.mark.parametrize("me", [0, 1, 2])
def test_three_processes_agree(told, me):
    same = f"5, (2.0, 0.0), [3.0, 3.0], [0, 0], 7, {me}, 'mistaken', 'mistaken'"
    assert f"{me}: [3, {me == 0}, {same}]" in told


def test_the_first_on_a_machine_has_its_turn_before_all_others(told):
    turns = [line for line in told if line.startswith("turn")]
    assert turns[0] == "turn 0"
    assert sorted(turns) == ["turn 0", "turn 1", "turn 2"]


def test_one_alone_agrees_with_itself():
    one = Processes(torch.device("cpu"))
    tensor = torch.ones(2)
    assert (one.rank, one.size, one.leads) == (0, 1, True)
    assert one.told("x") == "x"
    assert one.largest(1, -2.5) == (1, -2.5)
    assert one.total(tensor) is tensor
    assert one.told_tensor(tensor) is tensor
    assert one.led(lambda: 3) == one.in_turn(lambda: 3) == 3
