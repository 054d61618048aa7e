"""The loop and what it is made of: updates, optimizers, schedules, evaluation, loggers."""
