#!/bin/sh
# Examines the network between the pods of daemonset.yaml. The words of `rdmascope fleet` follow, of
# which the first says what pairs measure: without it, a fleet takes TCP if most adapters have failed.
#
#   ./fleet.sh send --time 10min
#
# `kubectl get pods -l app=rdmascope -o wide` says on which node each pod runs.
set -eu
case "${1--}" in
    -*) echo "fleet.sh: name what pairs measure, as in ./fleet.sh send --time 10min" >&2; exit 2 ;;
esac
pods=$(kubectl get pods -l app=rdmascope -o 'jsonpath={.items[*].metadata.name}')
[ -n "$pods" ] || { echo "fleet.sh: no pod has the label app=rdmascope: kubectl apply -f daemonset.yaml" >&2; exit 2; }
pods=$(echo "$pods" | tr ' ' ,)
exec rdmascope fleet "$@" --hosts "$pods" --via 'kubectl exec -i {host} --' --agent-path rdmascope
