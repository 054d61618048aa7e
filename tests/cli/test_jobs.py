"""One command line stands for every combination of what it sweeps."""

import pytest

from gpt.cli.jobs import jobs_of
from gpt.config import UserError

GROUPS = {"optimizer": ["adam", "muon", "sgd"], "model/position": ["none", "rope"], "logger": ["board", "console"]}


def argvs(*argv: str) -> list[list[str]]:
    return [list(job.argv) for job in jobs_of(argv, GROUPS)]


def test_the_last_one_runs_fastest():
    jobs = jobs_of(["-m", "steps=3", "n=2,4,8", "optimizer=adam,muon"], GROUPS)
    assert [job.differs for job in jobs] == [
        {"n": n, "optimizer": optimizer} for n in ("2", "4", "8") for optimizer in ("adam", "muon")
    ]
    assert [job.number for job in jobs] == [1, 2, 3, 4, 5, 6]
    assert jobs[1].argv == ["steps=3", "n=2", "optimizer=muon"]
    assert str(jobs[1]) == "job 2 of 6: n=2 optimizer=muon"


@pytest.mark.parametrize(
    "argument, values",
    [
        ("n=2,4", ["n=2", "n=4"]),
        ("++n=2,4", ["++n=2", "++n=4"]),
        ("n=range(1,4)", ["n=1", "n=2", "n=3"]),
        ("n=range(0.5,2,step=0.5)", ["n=0.5", "n=1.0", "n=1.5"]),
        ("n=sort(3,1,2)", ["n=1", "n=2", "n=3"]),
        ("model/position=choice(rope,none)", ["model/position=rope", "model/position=none"]),
        ("optimizer=glob(*)", ["optimizer=adam", "optimizer=muon", "optimizer=sgd"]),
        ("optimizer=glob([a*,s*])", ["optimizer=adam", "optimizer=sgd"]),
        ("optimizer=glob(*,exclude=m*)", ["optimizer=adam", "optimizer=sgd"]),
        ("logger=[board],[board,console]", ["logger=[board]", "logger=[board,console]"]),
        ("budget='1 min',\"2,5 min\"", ["budget='1 min'", 'budget="2,5 min"']),
        ("steps=10,null", ["steps=10", "steps=null"]),
        ("steps=[1,2]", ["steps=[1,2]"]),
        ("~steps", ["~steps"]),
        ("optimizer=choice(adam)", ["optimizer=adam"]),
    ],
)
def test_what_hydras_grammar_sweeps(argument: str, values: list[str]):
    assert argvs(argument) == [[value] for value in values]


@pytest.mark.parametrize(
    "argument", ["prompt=a, b,c", "name=range(1,3)", "dataset.path=x,y", "hydra.sweep.dir=a,b", "hydra.x=1,2", "~n=1,2"]
)
def test_free_text_never_sweeps(argument: str):
    assert argvs(argument) == [[argument]]


def test_shuffled_values_are_each_there_once():
    jobs = jobs_of(["n=shuffle(range(0,20))", "m=1,2"], GROUPS)
    assert sorted((int(job.differs["n"]), job.differs["m"]) for job in jobs) == [
        (n, m) for n in range(20) for m in ("1", "2")
    ]


def test_only_what_differs_is_told():
    (one,) = jobs_of(["n=choice(3)", "steps=2"], GROUPS)
    assert (str(one), one.differs) == ("job 1 of 1", {})
    assert [job.differs for job in jobs_of(["n=3,3", "m=1,2"], GROUPS)] == [{"m": "1"}, {"m": "2"}] * 2


def test_a_later_value_replaces_an_earlier_one():
    assert argvs("n=1,2", "m=3", "++n=5") == [["++n=5", "m=3"]]


@pytest.mark.parametrize(
    "argument, message",
    [
        ("optimizer=glob(x*)", "optimizer=glob(x*): no value is among these; see --help for what can be chosen"),
        ("n=glob(*)", "n=glob(*): no value is among these; see --help for what can be chosen"),
        ("n=range(3,3)", "n=range(3,3): no value is among these; see --help for what can be chosen"),
        ("n=range(1,3,step=0)", "n=range(1,3,step=0): no values can be made of this"),
        ("n=interval(0,1)", "n=interval(0,1): no values can be made of this"),
        ("n=1,[2", "n=1,[2: cannot be read; quote the value twice"),
        ("hydra.run.dir=x", "hydra.run.dir: each job of a sweep has a folder in the sweep's own"),
        ("hydra.sweep.subdir=x", "hydra.sweep.subdir: the folders of a sweep's jobs are called by their numbers"),
        ("hydra/sweeper=x", "hydra/sweeper: a sweep runs every combination"),
        ("hydra.sweeper.params={}", "hydra.sweeper.params: a sweep runs every combination"),
    ],
)
def test_what_cannot_be_swept_is_told(argument: str, message: str):
    with pytest.raises(UserError) as caught:
        argvs(argument)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
