"""Run learner code: its time limit, the global switches around it, and what the check needs from torch's internals."""
