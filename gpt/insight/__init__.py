"""What a person wants to know: of a text before a training; of a run and its model after it."""
