"""One conversation without I/O: what is asked for next, what the model is shown again, and what fits."""
