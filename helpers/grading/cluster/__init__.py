"""Grading on many machines, through dask.distributed. Imported only where a scheduler was named."""
