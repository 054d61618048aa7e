"""Folders that Hugging Face's transformers writes and opens: config.json, safetensors, tokenizer.json.

The package itself is not needed, neither to read nor to write them.
"""
