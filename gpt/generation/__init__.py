"""From a model's logits to text: the sampler, the loop around the model, the stream of characters."""
