"""What is in a text, and what a training will make of it: `data/prepare.py` shows it before an hour is spent."""
