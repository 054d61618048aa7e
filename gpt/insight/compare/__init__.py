"""`python -m gpt compare`: runs beside one another."""
