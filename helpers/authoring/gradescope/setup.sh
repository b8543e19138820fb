#!/usr/bin/env bash
# Gradescope runs this once, for the image. It installs bubblewrap, a recent Python, and the grader's packages.
set -eu
cd "${AUTOGRADER:-/autograder}/source"
apt-get update
apt-get install -y --no-install-recommends bubblewrap python3 python3-venv
python=python3
if ! $python -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  python=python3.11
  apt-get install -y --no-install-recommends $python $python-venv
fi
$python -m venv venv
venv/bin/python -m pip install -q -c requirements.lock -e ".[grade]"
