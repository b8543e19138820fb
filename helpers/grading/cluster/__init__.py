"""Grading on several computers through dask.distributed. This is imported only if a scheduler is used."""
