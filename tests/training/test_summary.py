"""What a person reads before and after a training, for a run whose sizes make the sums easy."""

from pathlib import Path

import numpy as np
import pytest
import torch

from gpt.checkpoint import State
from gpt.config import ROOT
from gpt.data.batches import Batches
from gpt.data.token_file import Counts, TokenFile
from gpt.data.tokenizer.byte import ByteConfig
from gpt.data.tokens import Prepared
from gpt.device import Precision
from gpt.generation.settings import GenerationSettings
from gpt.generation.text import TextGeneration
from gpt.model.attention.sdpa import Sdpa
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.processes import Processes
from gpt.run_folder import RunFolder
from gpt.training.evaluation import Evaluation
from gpt.training.guard import Guard
from gpt.training.horizon import Horizon
from gpt.training.optimizer.adamw import AdamwConfig
from gpt.training.parallel import Spread
from gpt.training.summary import conclude, spent, summarize
from gpt.training.update import Cost, Update

CPU = torch.device("cpu")
TOKENIZER = ByteConfig().build(lambda: iter(()))


@pytest.fixture
def model():
    torch.manual_seed(0)
    sizes = {"vocab_size": 257, "context": 10, "n_layer": 1, "n_head": 4, "n_kv_head": 2, "d_model": 8}
    return GPT(GPTConfig(**sizes, position={"name": "none"}))


def split(tokens):
    return TokenFile(Path("nowhere"), Counts(tokens=tokens, documents=tokens // 10, text_bytes=tokens), 257)


def data(validation):
    return Prepared("some texts", TOKENIZER, split(1010), split(validation) if validation else None, "f00d")


def lines(model, horizon, validation=2000, separator=None, precision="fp32", disturbed=None):
    batches = Batches(np.zeros(1010, dtype=np.int64), context=10, batch_size=50, seed=0)  # 100 windows of 10
    guard = Guard(AdamwConfig().build(model), 1.0, torch.amp.GradScaler("cpu", enabled=False))
    update = Update(
        Spread(model, Processes(torch.device("cpu"))),
        guard,
        Precision(precision, "as set", torch.device("cpu")),
        separator,
    )
    return dict(summarize(update, data(validation), batches, horizon, Cost(0.5, "off", disturbed)))


def test_the_lines_before_a_training(model):
    shown = lines(model, Horizon(40))
    assert shown["model"].startswith(
        f"{model.count_parameters():,} parameters: 1 layers of 8, 4 query heads over 2 key/value, context 10"
    )
    assert shown["model"].endswith("sdpa, none, swiglu")
    assert shown["data"] == "some texts"
    assert shown["tokens"] == "1,010 tokens for training, 2,000 for validation; 257 in the vocabulary"
    # 40 updates of 50 of the 100 windows
    assert shown["training"] == "40 steps of 50 x 10 tokens: each token is seen 20.0 times"
    assert shown["device"] == "cpu; fp32: as set; compile off"


def test_by_what_it_attends_is_told_in_the_precision_that_it_computes_in(model, monkeypatch):
    assert lines(model, Horizon(40))["attention"] == f"sdpa: {model.attentions[0].describe(CPU, torch.float32)}"
    told = []
    monkeypatch.setattr(Sdpa, "describe", lambda _, *how: told.append(how) or "by hand")
    assert lines(model, Horizon(40), precision="bf16")["attention"] == "sdpa: by hand"
    lines(model, Horizon(40), precision="bf16", separator=256)
    assert told == [(CPU, torch.bfloat16, False), (CPU, torch.bfloat16, True)]


def test_layers_that_attend_in_several_ways_tell_each_once():
    config = GPTConfig(
        vocab_size=257, context=1024, n_layer=4, n_head=2, d_model=16,
        attention={"name": "sliding_window", "layers": "SL"},
    )  # fmt: skip
    window, whole = (layer.describe(CPU, torch.float32) for layer in GPT(config).attentions[:2])
    assert window != whole
    assert lines(GPT(config), Horizon(40))["attention"] == f"sliding_window: {window}, {whole}"


def test_packed_documents_are_told(model):
    """101 documents in 1,010 tokens: a window of 10 begins in one, and of its 9 other tokens 0.9 begin another."""
    told = "documents: a token sees only its own, a window holds parts of 1.9 on average"
    assert lines(model, Horizon(40), separator=256)["packing"] == told
    assert "packing" not in lines(model, Horizon(40))


def test_the_cost_is_of_all_tokens_of_all_steps(model, monkeypatch):
    monkeypatch.setattr(model, "flops_per_token", lambda: 4_000_000)
    # 4 MFLOP times 500 tokens; 0.5 s times 240
    assert lines(model, Horizon(240))["cost"] == "a step is 2 GFLOP and takes 0.5 s, all of them about 2.0 min"


def test_what_was_measured_beside_others_is_said_to_be(model):
    assert lines(model, Horizon(240), disturbed=0.25)["cost"].endswith(
        "about 2.0 min; other programs used 25% of the processor meanwhile, so it may be less"
    )


def test_a_resumed_run_says_what_is_left(model):
    horizon = Horizon(240)
    horizon.start(done=120, elapsed=77.0)
    assert lines(model, horizon)["cost"].endswith("takes 0.5 s, those to come about 1.0 min")


def test_a_budget_says_about_how_many_steps(model):
    shown = lines(model, Horizon(7, budget=60.0), validation=0)
    assert shown["training"].endswith("; what a budget of time gives cannot be repeated exactly")
    assert shown["cost"].endswith("all of them about 1.0 min")
    assert shown["training"].startswith("about 120 steps of")
    assert "none for validation" in shown["tokens"]


def test_the_last_lines(model, tmp_path, written, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "my run"
    folder.mkdir()
    ours = written(b"\r\n\n The army of the United States\n")
    run = RunFolder(folder)
    told = conclude(run, Evaluation(loss=2.0, bits_per_byte=1.25, tokens=12345), model, ours)
    assert told == {"validation loss": "2.0000", "folder": "my run"}, "for a sweep's table"
    out = capsys.readouterr().out.splitlines()
    assert out[-1] == "validation loss 2.0000"
    assert out[-2].split(maxsplit=1)[1] == (
        "2.0000 nats per token (perplexity 7.4), 1.2500 bits per byte, over 12,345 tokens"
    )
    assert out[-3].endswith(f"python {ROOT / 'sample.py'} 'run=my run' 'prompt=The army of the' max_new_tokens=300")
    assert out[-4].split(maxsplit=2)[2] == "my run"
    conclude(run, None, model, ours)
    assert capsys.readouterr().out.splitlines()[-1] == "validation loss n/a"


@pytest.mark.parametrize("last, told", [(2.5, True), (1.5, False), (2.0, False)])
def test_a_best_that_is_not_the_last_is_told(last, told, model, tmp_path, written, capsys, bytes_data, state_of):
    run = RunFolder(tmp_path)
    run.start({}, bytes_data, keep=1)
    run.save(model.state_dict(), {}, state_of(60, 2.0))
    run.save(model.state_dict(), {}, state_of(200, last))
    conclude(run, Evaluation(loss=last, bits_per_byte=1.0, tokens=9), model, written(b"The people of"))
    out = capsys.readouterr().out
    assert ("Best:          2.0000 at step 60, which sample.py takes; the sample above" in out) == told


def test_a_sample_that_was_kept_and_a_report_are_told(model, tmp_path, written, capsys):
    run = RunFolder(tmp_path)
    run.keep_sample(60, " a text ")
    conclude(run, None, model, written(b"The people of"), lambda folder: folder / "report.html")
    out = capsys.readouterr().out
    assert "A sample:\n\na text\n" in out
    assert f"\nReport:        {tmp_path / 'report.html'}\n" in out
    conclude(run, None, model, written(b"The people of"))
    assert "Report" not in capsys.readouterr().out


def test_what_the_time_went_to(state_of):
    """Of 100 s, 30 were no training; what took no time is not told."""
    asides = {"probing": 2.0, "compiling": 0.01, "evaluating": 27.99}
    state = State(**{**state_of(60, 2.0), "elapsed": 100.0, "asides": asides}, data="f00d")
    assert spent(state) == "70.0 s of training, 2.0 s of probing, 28.0 s of evaluating"


@pytest.mark.parametrize(
    "text, ends, prompt",
    [
        (b"The people of the United States", True, "The people of the"),
        ([*b"Ann", 256, *b"Bob", 256], True, ""),  # a whole name
        (b" \n \n \n \n \n", False, " \n \n \n \n"),  # without an end-of-text nothing can begin
    ],
)
def test_the_sample_begins_as_the_training_text_does(model, tmp_path, written, capsys, text, ends, prompt):
    tokenizer = ByteConfig().build(lambda: iter(()))
    if not ends:
        tokenizer.end_of_text = None
    conclude(RunFolder(tmp_path), None, model, written(text, tokenizer))
    out = capsys.readouterr().out
    text = TextGeneration(model, tokenizer, [prompt], GenerationSettings(max_new_tokens=150)).run()[0].text
    assert f"A sample:\n\n{(prompt + text).strip()}\n" in out, "prompt and text join as they are"
    assert out.splitlines()[-1] == "validation loss n/a"
