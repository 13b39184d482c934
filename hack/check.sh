#!/usr/bin/env bash
# Everything that can be checked without running the product: check.sh BIN. Reports all that is wrong, then fails.
set -uo pipefail
bin=$1
failed=()

step() {
  local name=$1
  shift
  echo "== $name"
  "$@" || failed+=("$name")
}

crd_is_current() {
  "$bin/python" -m vlm_operator.cli.operator crd | diff -u crds/vlmdeployments.vlm.dev.yaml - \
    || { echo "crds/ differs from the types: run make generate"; return 1; }
  cmp crds/vlmdeployments.vlm.dev.yaml charts/vlm-operator/files/crd.yaml \
    || { echo "the CRD of the chart is not that of crds/: run make generate"; return 1; }
}

permissions_are_current() {
  "$bin/python" -m permission_rules | diff -u charts/vlm-operator/files/permissions.yaml - \
    || { echo "the chart's permissions differ from the list in the code: run make generate"; return 1; }
}

reference_is_current() {
  "$bin/python" -m reference_docs --check docs/reference \
    || { echo "docs/reference differs from what it is made from: run make generate"; return 1; }
}

step format "$bin/ruff" format --check --quiet .
step lint "$bin/ruff" check --quiet .
step types "$bin/mypy"
step "import contracts" "$bin/lint-imports" --no-cache
step "generated CRD" crd_is_current
step "generated permissions" permissions_are_current
step "reference pages" reference_is_current
step "dead code" "$bin/vulture"

if ((${#failed[@]})); then
  echo "failed: ${failed[*]}" >&2
  exit 1
fi
echo "all checks passed"
