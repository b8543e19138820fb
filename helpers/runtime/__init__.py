"""What Python and torch do around an answer: time limits, global switches, and names that torch keeps to itself."""
