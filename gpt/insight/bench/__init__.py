"""How fast is it? Training and decoding on one shape, beside a peer, and beside what the machine can do."""
