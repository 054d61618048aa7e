"""What a training will cost, told before anything of it is allocated: `python -m gpt plan`."""
