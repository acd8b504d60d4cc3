"""What travels: events, turns, errors, JSON as models write it, and the names of what was mended or refused."""
