"""Replaces a worker's judge: a worker named slow keeps its portion until it is shut down, and the others judge."""

import time

from distributed import get_worker
from distributed.core import Status

from helpers.grading.cluster import worker

really = worker.judge


def judge(request: worker.Request) -> tuple:
    here = get_worker()
    if not here.name.startswith("slow"):
        return really(request)
    while here.status == Status.running:
        time.sleep(0.1)
    return "failed", "nobody waits for this"
