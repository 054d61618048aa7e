"""`python -m gpt export`: a trained model as a folder that others open."""
