"""Devices and precisions, and what a GPU would trip over, found without one."""

import re

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from gpt.config import UserError, variant_names
from gpt.data.batches import Batches
from gpt.device import Precision, choose_device, choose_precision, compile_forward
from gpt.generation.generate import decode, prefill
from gpt.generation.sampler import SamplerSettings, next_token
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.model.mask import Where
from gpt.training.guard import Guard
from gpt.training.optimizer.adamw import AdamwConfig
from gpt.training.update import Update

META = torch.device("meta")


class OnlyMeta(TorchDispatchMode):
    """Rejects operations on tensors of any other device, and with them every value read back from this one.

    Allowed are AdamW's step counts, which are zero-dimensional and live on the host, and moving int64 batches here.
    """

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        arriving = func is torch.ops.aten._to_copy.default and args[0].dtype == torch.int64
        for leaf in tree_leaves((() if arriving else args, kwargs, result)):
            if isinstance(leaf, torch.Tensor) and leaf.device != META:
                is_count = leaf.ndim == 0 and leaf.dtype == torch.float32
                assert is_count, f"{func} met a tensor of {leaf.device}, shape {tuple(leaf.shape)}"
        return result


def build(attention="sdpa", position="rope", **settings) -> GPT:
    config = GPTConfig(
        vocab_size=11, context=8, n_layer=1, n_head=2, d_model=8,
        attention={"name": attention}, position={"name": position}, **settings,
    )  # fmt: skip
    with META:
        return GPT(config)


@pytest.mark.parametrize("attention", variant_names("gpt.model.attention"))
@pytest.mark.parametrize("position", variant_names("gpt.model.position"))
@pytest.mark.parametrize("norm", ["rmsnorm", "layernorm"])
def test_an_update_and_a_decode_step_stay_on_the_device(attention, position, norm, tokens):
    model = build(attention, position, norm=norm, bias=norm == "layernorm", dropout=0.1)
    guard = Guard(AdamwConfig().build(model), 1.0, torch.amp.GradScaler("cpu", enabled=False))
    update = Update(model, guard, Precision("fp32", "as set", META))
    batches = Batches(tokens, 8, 4, seed=0)
    micro_batches = [batches.batch(0, micro_step, accumulate=2) for micro_step in range(2)]
    padding = torch.tensor([[-1, 0, 1], [0, 1, 2]]).to(META)
    prompt, following = (
        torch.zeros(2, 3, dtype=torch.int64, device=META),
        Where(padding[:, -1:] + 1, padding[:, :1] * 0),
    )
    uniform = torch.zeros(2, dtype=torch.float64, device=META)
    seen = torch.zeros(2, 11, dtype=torch.bool, device=META)
    settings = SamplerSettings(top_k=3, top_p=0.9, min_p=0.1, repetition_penalty=1.1)
    with OnlyMeta():
        for _ in range(2):  # the second has optimizer state
            loss, norm = update(micro_batches)
        with torch.no_grad():
            for where, after in ((None, None), (Where(padding, padding * 0), following)):
                logits, cache = prefill(model, prompt, where, capacity=4)
                token = next_token(logits, uniform, settings, seen)
                logits = decode(model, token[:, None], after, cache)
    assert loss.device == norm.device == logits.device == META
    assert logits.shape == (2, 11)


def test_the_mode_rejects_what_it_should():
    with OnlyMeta():
        with pytest.raises(AssertionError, match="met a tensor of cpu"):
            torch.zeros(2) + torch.zeros(2)
        with pytest.raises(AssertionError, match="met a tensor of cpu"):
            torch.zeros(3, device=META)[torch.arange(2)]
        with pytest.raises((RuntimeError, NotImplementedError), match="meta"):
            torch.zeros((), device=META).item()


@pytest.fixture
def tokens():
    return torch.arange(100).numpy() % 11


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "cpu:0x", ""])
def test_what_is_no_device_is_refused(name):
    with pytest.raises(UserError, match=re.escape(f"device: {name!r} is none of")):
        choose_device(name)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a cuda device")
@pytest.mark.parametrize("name", ["cuda", "cuda:1"])
def test_a_device_that_is_not_there(name):
    with pytest.raises(UserError, match=f"device: {name} is not on this machine, which has .*cpu"):
        choose_device(name)


def test_precisions_of_the_cpu():
    cpu = torch.device("cpu")
    assert choose_precision("fp32", cpu)[:2] == ("fp32", "as set")
    assert choose_precision("auto", cpu).name in ("fp32", "bf16")
    with pytest.raises(UserError, match="precision: fp16 needs a cuda device, this is cpu"):
        choose_precision("fp16", cpu)


@pytest.mark.parametrize("name, dtype", [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_autocast_computes_in_the_precision(name, dtype):
    precision = choose_precision(name, torch.device("cpu"))
    with precision.autocast():
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == dtype


def test_compile_off_gives_the_model_itself():
    model = torch.nn.Linear(1, 1)
    assert compile_forward(model, "off", 1e9, lambda forward: 0.0) == (model, "off")
