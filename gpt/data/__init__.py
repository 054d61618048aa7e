"""Text -> token batches; knows nothing of the model.

Datasets give documents, tokenizers turn them into token files, and batches are cut from those.
"""
