"""The class, between the learning platform and the gradebook: submissions come in, totals and feedback go back."""
