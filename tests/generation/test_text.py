import pytest
import torch

from gpt.config import UserError, parse
from gpt.data.batches import IGNORE
from gpt.data.tokenizer.byte import Byte
from gpt.data.tokenizer.char import CharConfig
from gpt.generation.settings import GenerationSettings
from gpt.generation.text import TextGeneration, encode_prompt
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT

TEXT = "はい、🚀\r\nTHE END"  # 9 + 4 + 2 + 7 = 22 bytes
CONTEXT = 32
TABLE = 300  # more rows than the 257 ids of the tokenizer


@pytest.fixture(scope="module")
def model():
    """A model that has learned TEXT by heart, from any of its characters on, and to end it."""
    torch.manual_seed(0)
    sizes = {"vocab_size": TABLE, "context": CONTEXT, "n_layer": 2, "n_head": 2, "d_model": 48}
    model = GPT(parse(GPTConfig, sizes))
    document = [256, *TEXT.encode(), 256]
    starts = [0, *(1 + len(TEXT[:i].encode()) for i in range(len(TEXT)))]
    rows = [document[start:] + [IGNORE] * start for start in starts]
    tokens = torch.tensor(rows)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(100):
        loss = model(tokens[:, :-1].clamp(min=0), targets=tokens[:, 1:]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.05  # what is left: はい、 share their first byte, and E stands twice
    return model.eval()


def write(model, prompts, tokenizer=None, **changes) -> TextGeneration:
    chosen = GenerationSettings(**{"temperature": 0.0, "max_new_tokens": 60, **changes})
    return TextGeneration(model, tokenizer or Byte(), prompts, chosen)


def test_bytes_become_whole_characters_as_they_come(model):
    texts = write(model, [TEXT[0]])
    pieces = [piece for [piece] in texts]
    assert [piece for piece in pieces if piece] == list(TEXT[1:])
    [sample] = texts.samples
    # One piece for each of 19 bytes and one for end-of-text, which is no part of the text.
    assert (sample.text, sample.tokens, sample.ending, len(pieces)) == (TEXT[1:], 19, "end-of-text", 20)


def test_an_empty_prompt_begins_a_document(model):
    assert write(model, [""]).run()[0].text == TEXT


def test_an_empty_prompt_without_end_of_text_is_refused(model):
    tokenizer = Byte()
    tokenizer.end_of_text = None
    with pytest.raises(UserError, match=r"prompt: it is empty.* give a prompt"):
        write(model, ["x", ""], tokenizer)
    [sample] = write(model, ["は"], tokenizer, max_new_tokens=19).run()
    assert (sample.text, sample.ending) == (TEXT[1:], "length")


def characters(*documents, **settings):
    return CharConfig(**settings).build(lambda split: ([text] for text in documents))


def test_an_unknown_character_in_a_prompt_is_one_line_with_the_choices(model):
    with pytest.raises(UserError) as error:
        write(model, ["ab", "ba é"], characters("ab "))
    assert str(error.value).startswith("prompt: 'é' (U+00E9 LATIN SMALL LETTER E WITH ACUTE) at character 3 is none of")
    assert "unknown=skip" in str(error.value)
    assert "unknown=replace" in str(error.value)
    assert "\n" not in str(error.value)


def test_what_becomes_of_unknown_characters_in_a_prompt():
    tokenizer = characters("ab", unknown="replace")
    assert encode_prompt(tokenizer, "aéb") == [0, 2, 1]
    assert encode_prompt(tokenizer, "aéb", "skip") == [0, 1]
    with pytest.raises(UserError, match="^prompt: 'é'"):
        encode_prompt(tokenizer, "aéb", "error")


def test_the_setting_reaches_the_prompt(model):
    tokenizer = characters("ab", "c")
    texts = write(model, ["aéb"], tokenizer, unknown="skip", max_new_tokens=1, overflow="stop")
    assert texts.samples[0].prompt == "aéb"
    with pytest.raises(UserError, match="^prompt: 'é'"):
        write(model, ["aéb"], tokenizer)


def test_a_prompt_of_nothing_but_unknown_characters(model):
    assert encode_prompt(characters("ab", "c"), "é", "skip") == [3]  # begins a document
    with pytest.raises(UserError, match="^prompt: nothing that the tokenizer knows is in it, and .* give a prompt$"):
        encode_prompt(characters("ab"), "é", "skip")


def test_half_of_a_surrogate_pair_in_a_prompt_is_refused():
    with pytest.raises(UserError, match=r"^prompt: U\+DC80 at character 1 is half of a surrogate pair"):
        encode_prompt(Byte(), "a\udc80")


@pytest.mark.parametrize("stop", ["🚀", "🚀\r\nT", "、🚀", "END", " "])
def test_the_text_ends_right_before_the_stop_string(model, stop):
    texts = write(model, ["は"], stop=stop)
    pieces = [piece for [piece] in texts]
    [sample] = texts.samples
    assert "".join(pieces) == sample.text == TEXT[1:].partition(stop)[0]
    assert sample.ending == "stop"
    # Not a token is drawn after the stop string; those of the stop string are counted.
    assert sample.tokens == len(pieces) == len((sample.text + stop).encode())


def test_what_was_held_back_comes_at_the_end(model):
    texts = write(model, ["は"], stop="END of all")
    pieces = [piece for [piece] in texts]
    assert pieces[-1] == "END"
    assert (texts.samples[0].text, texts.samples[0].ending) == (TEXT[1:], "end-of-text")


def test_half_a_character_at_the_end_is_a_replacement_character(model):
    texts = write(model, ["はい"], max_new_tokens=5)  # 、 and 2 of the 4 bytes of 🚀
    assert [piece for [piece] in texts] == ["", "", "、", "", "", "\ufffd"]
    assert (texts.samples[0].text, texts.samples[0].tokens, texts.samples[0].ending) == (
        "、\ufffd",
        5,
        "length",
    )


def test_texts_side_by_side_end_each_for_itself(model):
    prompts = [TEXT[0], "THE E", TEXT[:4]]
    texts = write(model, prompts, num_samples=2, stop="\r\n")
    pieces = list(texts)
    assert [s.prompt for s in texts.samples] == [p for p in prompts for _ in range(2)]
    assert [s.text for s in texts.samples[::2]] == ["い、🚀", "ND", ""]
    assert [s.text for s in texts.samples[1::2]] == ["い、🚀", "ND", ""]
    assert [s.ending for s in texts.samples[::2]] == ["stop", "end-of-text", "stop"]
    assert ["".join(column) for column in zip(*pieces, strict=True)] == [s.text for s in texts.samples]
    assert len(pieces) == 3 + 3 + 4 + 2  # until the last text has ended


def test_a_full_context_ends_a_text_with_overflow_stop(model):
    tokenizer = Byte()
    tokenizer.end_of_text = None
    prompts = ["x" * CONTEXT, "x" * (CONTEXT - 2), "x" * (CONTEXT - 5)]
    samples = write(model, prompts, tokenizer, overflow="stop", max_new_tokens=5).run()
    assert [(s.tokens, s.ending) for s in samples] == [(0, "context"), (2, "context"), (5, "length")]


def test_a_long_prompt_is_cropped_with_a_notice_or_refused(model):
    long = "x" * (CONTEXT + 8) + "TH"
    texts = write(model, [long, "TH"], max_new_tokens=3)
    assert texts.notices == ["prompt 1 of 2 has 42 tokens, the model's context is 32: its first 10 are left out"]
    assert texts.run()[0].prompt == long
    with pytest.raises(UserError, match="42 tokens, and max_new_tokens=3 exceed"):
        write(model, [long, "TH"], overflow="error", max_new_tokens=3)
    assert write(model, ["TH"], overflow="error", max_new_tokens=3).notices == []


def test_a_long_prompt_is_whole_for_a_model_that_reads_on_beyond_its_context():
    sizes = {"vocab_size": 257, "context": CONTEXT, "n_layer": 1, "n_head": 2, "d_model": 16}
    model = GPT(parse(GPTConfig, {**sizes, "attention": {"name": "sliding_window"}}))
    long = "x" * (CONTEXT + 8) + "TH"
    texts = write(model, [long, "TH"], max_new_tokens=3)
    assert texts.notices == []
    assert [sample.tokens for sample in texts.run()] == [3, 3]
    assert (
        "42 tokens, the model's context is 32: nothing is written" in write(model, [long], overflow="stop").notices[0]
    )
    with pytest.raises(UserError, match="42 tokens, and max_new_tokens=3 exceed"):
        write(model, [long], overflow="error", max_new_tokens=3)


def test_a_special_token_s_text_in_a_prompt_is_text(model):
    [sample] = write(model, ["<|endoftext|>"], max_new_tokens=1).run()
    assert sample.prompt == "<|endoftext|>"
    assert sample.tokens == 1


def test_the_model_s_mode_comes_back_when_all_texts_have_ended(model):
    model.train()
    try:
        texts = write(model, ["THE"])
        assert texts.run()[0].ending == "end-of-text"
        assert model.training  # although `texts`, with steps that were not taken, is still there
    finally:
        model.eval()


def test_noise_of_a_hot_sample_is_text_all_the_same(model):
    texts = write(model, [TEXT[0]], temperature=50.0, top_k=0, num_samples=3)
    columns = zip(*texts, strict=True)
    for sample, column in zip(texts.samples, columns, strict=True):
        assert "".join(column) == sample.text
        assert sample.text.encode().decode() == sample.text
