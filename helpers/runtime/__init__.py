"""What Python and torch do around an answer: limits of time, global switches, and the names that torch keeps to itself."""
