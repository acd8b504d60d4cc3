"""The loop: a model, a workspace and the person between them; and the sub-agents that it starts."""
