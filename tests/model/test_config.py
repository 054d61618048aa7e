import pytest

from gpt.config import UserError
from gpt.model.config import GPTConfig


def test_sizes_that_do_not_divide_are_refused():
    with pytest.raises(UserError, match=r"model\.d_model: 10 is not divisible by n_head 3"):
        GPTConfig(d_model=10, n_head=3)
    with pytest.raises(UserError, match=r"model\.n_kv_head: n_head 4 is not divisible by n_kv_head 3"):
        GPTConfig(d_model=8, n_head=4, n_kv_head=3)


def test_heads_that_are_too_wide_together_are_refused():
    with pytest.raises(UserError, match=r"model\.head_dim: 65536 heads of width 257 are wider than 16,777,216"):
        GPTConfig(n_head=1 << 16, head_dim=257)
    assert GPTConfig(n_head=1 << 16, head_dim=256).head_size == 256


def test_sizes_that_are_left_open_are_resolved():
    assert GPTConfig(n_head=4, n_kv_head=None, d_model=8).kv_heads == 4
    assert GPTConfig(n_head=4, d_model=8).head_size == 2
    assert GPTConfig(n_head=3, d_model=8, head_dim=16).head_size == 16


def test_vocabulary():
    assert GPTConfig().for_vocabulary(7).vocab_size == 7
    assert GPTConfig(vocab_size=8).for_vocabulary(7).vocab_size == 8
    with pytest.raises(UserError, match=r"model\.vocab_size: 6 is less than the tokenizer's 7"):
        GPTConfig(vocab_size=6).for_vocabulary(7)
