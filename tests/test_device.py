"""Devices and precisions, and what a GPU would trip over, found without one."""

import math
import os
import re
from types import SimpleNamespace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from gpt.config import RunError, UserError, variant_class, variant_names
from gpt.data.batches import Batches
from gpt.device import (
    Precision,
    check_memory,
    choose_device,
    choose_precision,
    compile_forward,
    keep_compiled,
    prepare_device,
)
from gpt.generation.decoder import Decoder
from gpt.generation.reader import prefill
from gpt.generation.sampler import SamplerSettings, next_token
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.model.mask import Where
from gpt.processes import Processes
from gpt.training.guard import Guard
from gpt.training.parallel import Spread
from gpt.training.update import Update

META = torch.device("meta")
OPTIMIZERS = "gpt.training.optimizer"


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
@pytest.mark.parametrize("optimizer", variant_names(OPTIMIZERS))
def test_an_update_and_a_decode_step_stay_on_the_device(attention, position, norm, optimizer, tokens):
    try:
        model = build(attention, position, norm=norm, bias=norm == "layernorm", dropout=0.1)
    except UserError as refused:  # parts that do not go together
        pytest.skip(str(refused))
    guard = Guard(
        variant_class(OPTIMIZERS, optimizer)(name=optimizer).build(model),
        1.0,
        torch.amp.GradScaler("cpu", enabled=False),
    )
    update = Update(Spread(model, Processes(META)), guard, Precision("fp32", "as set", META))
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
                logits = Decoder(model)(token[:, None], after, cache)
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


@pytest.fixture
def machine(monkeypatch):
    """Makes torch report these devices; nothing is computed on them."""

    def machine(cuda=0, mps=False, bf16=False, emulated_bf16=True):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
        monkeypatch.setattr(
            torch.cuda,
            "is_bf16_supported",
            lambda including_emulation=True: bf16 or (including_emulation and emulated_bf16),
        )

    return machine


@pytest.mark.parametrize("cuda, mps, chosen", [(2, True, "cuda"), (0, True, "mps"), (0, False, "cpu")])
def test_auto_takes_the_best_device(machine, cuda, mps, chosen):
    machine(cuda=cuda, mps=mps)
    assert choose_device("auto").type == chosen


def test_a_device_is_taken_as_it_is_named_if_it_is_there(machine):
    machine(cuda=2)
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device("cuda:1") == torch.device("cuda:1")
    with pytest.raises(UserError, match="device: cuda:2 is not on this machine, which has cuda, cpu"):
        choose_device("cuda:2")
    with pytest.raises(UserError, match="device: mps is not on this machine"):
        choose_device("mps")


def test_precisions_of_cuda(machine):
    cuda = torch.device("cuda")
    machine(cuda=1, bf16=True)
    assert choose_precision("auto", cuda).name == "bf16"
    assert choose_precision("fp16", cuda).name == "fp16"
    machine(cuda=1, bf16=False)  # torch would emulate it, slowly
    assert choose_precision("auto", cuda)[:2] == ("fp16", "this cuda device has no bf16; losses are scaled")
    with pytest.raises(UserError, match="precision: this cuda device has no bf16"):
        choose_precision("bf16", cuda)


@pytest.mark.parametrize("has_it, chosen", [(True, "bf16"), (False, "fp32")])
def test_auto_on_the_cpu_takes_bf16_where_it_is_native(monkeypatch, has_it, chosen):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": has_it})
    assert choose_precision("auto", torch.device("cpu")).name == chosen


def test_auto_on_mps_takes_fp32():
    assert choose_precision("auto", torch.device("mps")).name == "fp32"


@pytest.fixture
def process_settings():
    """Puts back what `prepare_device` sets for the whole process."""
    before = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(before)
    torch.set_flush_denormal(False)
    torch.use_deterministic_algorithms(False)


def test_denormals_are_flushed_and_products_stay_fp32_on_the_cpu(process_settings):
    torch.set_float32_matmul_precision("highest")
    prepare_device(torch.device("cpu"))
    product = (torch.tensor([2.0**-100]) * 2.0**-30).item()  # the least normal number is 2^-126
    if torch.set_flush_denormal(True):  # this processor can
        assert product == 0.0
    assert torch.get_float32_matmul_precision() == "highest"


def test_algorithms_are_deterministic_on_the_cpu_and_no_memory_is_filled_for_it(process_settings):
    prepare_device(torch.device("cpu"))
    assert torch.are_deterministic_algorithms_enabled()
    assert torch.is_deterministic_algorithms_warn_only_enabled()
    assert not torch.utils.deterministic.fill_uninitialized_memory


def test_tf32_is_on_for_cuda(process_settings, monkeypatch, machine):
    machine(cuda=1)
    chosen = []
    # torch refuses to set a device without an index
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: chosen.append(torch.device(device.type, device.index)))
    prepare_device(choose_device("cuda"))
    assert torch.get_float32_matmul_precision() == "high"
    assert [device.index for device in chosen] == [0]
    assert not torch.are_deterministic_algorithms_enabled(), "slower there, and of no use: other sums differ anyway"


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


@pytest.mark.parametrize("name, scaled", [("fp32", False), ("bf16", False), ("fp16", True)])
def test_losses_are_scaled_in_fp16_alone(name, scaled):
    assert Precision(name, "as set", torch.device("cpu")).scaler().is_enabled() == scaled


def test_what_was_compiled_before_does_not_count(monkeypatch):
    """Of one function PyTorch compiles eight shapes and no more."""
    done = []
    monkeypatch.setattr(torch.compiler, "reset", lambda: done.append("reset"))
    monkeypatch.setattr(torch, "compile", lambda model: done.append("compile") or model)
    compile_forward(torch.nn.Linear(1, 1), "on", 0.0, lambda forward: 1.0, random=False)
    assert done == ["reset", "compile"]


@pytest.mark.parametrize("named", [None, "elsewhere"])
def test_compiled_code_is_kept_where_the_user_keeps_such_things(monkeypatch, tmp_path, named):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", named or "")
    if not named:
        monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    keep_compiled()
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == (named or str(tmp_path / "tiny-gpt" / "compiled"))


def test_without_a_place_to_keep_it_compiled_code_is_temporary(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    keep_compiled()
    assert "TORCHINDUCTOR_CACHE_DIR" not in os.environ


def test_compile_off_gives_the_model_itself():
    model = torch.nn.Linear(1, 1)
    assert compile_forward(model, "off", 1e9, lambda forward: 0.0, random=False) == (model, "off")


class On(torch.nn.Linear):
    """Says that its weights are on a device, and computes nothing."""

    def __init__(self, device):
        super().__init__(1, 1)
        self.device = torch.device(device)

    def parameters(self, recurse=True):
        return iter([SimpleNamespace(device=self.device)])


@pytest.mark.parametrize(
    "device, seconds, says",
    [
        ("cuda", 120, "on"),
        ("cuda", 119, "off (auto: only from 120 s on)"),
        ("cpu", 150, "on"),
        ("cpu", 149, "off (auto: only from 150 s on)"),
        ("mps", 1e9, "off (auto: not on mps)"),
    ],
)
def test_auto_compiles_where_it_repays_itself(monkeypatch, device, seconds, says):
    model, forward = On(device), object()
    monkeypatch.setattr(torch, "compile", lambda model: forward)
    chosen = compile_forward(model, "auto", seconds, lambda forward: 1.0, random=False)
    assert chosen == (forward if says == "on" else model, says)


@pytest.mark.parametrize(
    "eager, compiled, good",
    [(10.0, 10.15, True), (10.0, 10.25, False), (10.0, 9.75, False), (0.1, 0.11, False), (10.0, math.nan, False)],
)
def test_a_compiled_loss_must_be_the_eager_one(monkeypatch, eager, compiled, good):
    model, forward = torch.nn.Linear(1, 1), object()
    monkeypatch.setattr(torch, "compile", lambda model: forward)

    def probe(of):
        return eager if of is model else compiled

    if good:
        assert compile_forward(model, "strict", 0.0, probe, random=False) == (forward, "on")
        return
    with pytest.raises(RunError, match="compile: strict"):
        compile_forward(model, "strict", 0.0, probe, random=False)
    with pytest.warns(UserWarning, match="going on without"):
        assert compile_forward(model, "on", 0.0, probe, random=False) == (model, "off (it failed)")
    if math.isfinite(compiled):  # by dropout the two differ, and are not compared
        assert compile_forward(model, "strict", 0.0, probe, random=True) == (forward, "on")


def test_frozen_parameters_need_no_gradient_s_memory():
    """A tenth of the memory's bytes as parameters: 16 of each are too much, 4 are not."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    large = torch.nn.Linear(1, memory // 10, bias=False, device="meta")
    with pytest.raises(UserError, match=rf"take {1.6 * memory / 1e9:,.1f} GB, this cpu has"):
        check_memory(large, torch.device("cpu"))
    check_memory(large.requires_grad_(False), torch.device("cpu"))
