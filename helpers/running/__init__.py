"""How learner code is run: its time limit, torch's global switches, and what only torch's insides tell of it."""
