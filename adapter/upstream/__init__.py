"""The model's side: servers and the engine in this process, how they are found, asked, and what their failures mean."""
