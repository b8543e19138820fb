"""The check: what is compared, how an answer is observed and judged, and how the result is put into words."""
