"""The course's tests, and what they share."""
