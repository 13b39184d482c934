#!/usr/bin/env bash
# Makes the project's Python environment: setup.sh VENV. Installs exactly what requirements/dev.txt names, by hash.
set -euo pipefail
venv=$1
python=${PYTHON:-python3}

fail() { echo "$*" >&2; exit 1; }

command -v "$python" > /dev/null || fail "Python is missing: install Python 3.11, 3.12 or 3.13, or name it: make PYTHON=python3.12 ..."
"$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
  || fail "$("$python" --version) does not do: install Python 3.11, 3.12 or 3.13, or name it: make PYTHON=python3.12 ..."
"$python" -c 'import ensurepip, venv' 2> /dev/null \
  || fail "Python's venv module is missing: install it (on Debian and Ubuntu: apt install python3-venv)."

started=$SECONDS
echo "setting up $venv with $("$python" --version) (about a minute the first time) ..."
rm -f "$venv/.ready"
"$python" -m venv --clear "$venv"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements/dev.txt > "$log" 2>&1 \
  || ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . >> "$log" 2>&1; then
  tail -n 20 "$log" >&2
  fail "Installing the Python packages failed (see above): the package index must be reachable the first time."
fi
touch "$venv/.ready"
echo "setting up $venv ... done in $((SECONDS - started)) s"
