"""What the file tools do: read, write, patch, move, search and outline."""
