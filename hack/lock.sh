#!/usr/bin/env bash
# Resolves pyproject.toml into requirements/*.txt with hashes, for Python 3.11 to 3.13 on any platform: lock.sh BIN.
set -euo pipefail
bin=$1
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
"$bin/python" -m pip install --quiet --disable-pip-version-check --target "$tools" uv
compile=("$tools/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header)
"${compile[@]}" pyproject.toml -o requirements/run.txt
"${compile[@]}" --group dev --extra simulate pyproject.toml -o requirements/dev.txt
"${compile[@]}" --group build -o requirements/build.txt
