"""What is seen of the server from outside: metrics, traces, lines of a log, and the ids by which requests are found."""
