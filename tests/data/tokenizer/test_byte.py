import numpy as np

from gpt.data.tokenizer.byte import Byte


def test_ids_are_the_bytes_and_end_of_text_is_256():
    tokenizer = Byte()
    assert tokenizer.encode("aé日") == [0x61, 0xC3, 0xA9, 0xE6, 0x97, 0xA5]
    assert tokenizer.encode_piece("aé").dtype == np.uint8
    assert (tokenizer.vocab_size, tokenizer.end_of_text) == (257, 256)
    assert tokenizer.byte_lengths().tolist() == [1] * 256 + [0]
