"""What does a model see in a text? Surprise, next tokens, the attention of each head: `python -m gpt inspect`."""
