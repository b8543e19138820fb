"""The class, between the learning platform and the gradebook: hand-ins come in, totals and feedback go back."""
