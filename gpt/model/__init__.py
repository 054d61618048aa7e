"""Token ids -> logits. Knows nothing of text, files, optimizers or hydra."""
