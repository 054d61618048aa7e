"""`python -m gpt report`: a page about one run, which train.py leaves too."""
