"""The machinery of a check: what is compared, how an answer is observed, and what is said of it."""
