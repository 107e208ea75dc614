#!/bin/sh
# Examines the network between the pods of daemonset.yaml. Words of `rdmascope fleet` may follow:
#
#   ./fleet.sh tcp --time 10min
#
# `kubectl get pods -l app=rdmascope -o wide` says on which node each pod runs.
set -eu
pods=$(kubectl get pods -l app=rdmascope -o 'jsonpath={.items[*].metadata.name}' | tr ' ' ,)
exec rdmascope fleet --hosts "$pods" --via 'kubectl exec -i {host} --' --agent-path rdmascope "$@"
