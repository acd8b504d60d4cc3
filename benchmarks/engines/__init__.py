"""Our parsers inside the releases of other people's engines, beside the engines' own."""
