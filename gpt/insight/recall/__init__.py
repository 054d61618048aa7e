"""What attention recalls: the task, and what is told and drawn of the answers; for `study recall`."""
