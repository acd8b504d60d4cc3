"""What a model is told: tools in words or as its own chat template writes them, and nothing that could end a turn."""
