{{- /* Generated from operator/src/tierbench/api/rbac.py: change that, then run `make generate`. */ -}}
{{- define "tierbench.rules.cluster" -}}
# Resolves node classes.
- apiGroups: [tierbench.io]
  resources: [nodeclasses]
  verbs: [list, watch]
# Writes the nodes of a class.
- apiGroups: [tierbench.io]
  resources: [nodeclasses/status]
  verbs: [patch]
# Finds the nodes of a class, and records their properties.
- apiGroups: ['']
  resources: [nodes]
  verbs: [list, watch]
{{- end }}
{{- define "tierbench.rules.namespaced" -}}
# Runs benchmarks, patches their finalizer, and deletes them after runPolicy.ttlSecondsAfterFinished.
- apiGroups: [tierbench.io]
  resources: [filetransferbenchmarks, brokerbenchmarks, networkbenchmarks]
  verbs: [list, watch, patch, delete]
# Writes the state of benchmarks.
- apiGroups: [tierbench.io]
  resources: [filetransferbenchmarks/status, brokerbenchmarks/status, networkbenchmarks/status]
  verbs: [patch]
# Keeps results, within the history, and labels those of superseded runs.
- apiGroups: [tierbench.io]
  resources: [benchmarkresults]
  verbs: [list, watch, create, patch, delete]
# Writes what was measured.
- apiGroups: [tierbench.io]
  resources: [benchmarkresults/status, benchmarkrecords/status]
  verbs: [patch]
# Keeps the trials of each result, and reads those of cases that are being measured.
- apiGroups: [tierbench.io]
  resources: [benchmarkrecords]
  verbs: [get, create, delete]
# Reads questions.
- apiGroups: [tierbench.io]
  resources: [placementadvices]
  verbs: [list, watch]
# Writes answers.
- apiGroups: [tierbench.io]
  resources: [placementadvices/status]
  verbs: [patch]
# Deploys servers, and sees how clients end.
- apiGroups: ['']
  resources: [pods]
  verbs: [list, watch, create, delete]
# Reads what clients measured.
- apiGroups: ['']
  resources: [pods/log]
  verbs: [get]
# Gives servers an address.
- apiGroups: ['']
  resources: [services]
  verbs: [list, watch, create, delete]
# Gives servers their configuration.
- apiGroups: ['']
  resources: [configmaps]
  verbs: [create, delete]
# Creates credentials, and never reads a Secret.
- apiGroups: ['']
  resources: [secrets]
  verbs: [create, delete]
# Gives servers a volume of a storage class.
- apiGroups: ['']
  resources: [persistentvolumeclaims]
  verbs: [create, delete]
# Isolates the pods of a benchmark.
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [create, delete]
# Reports what happened, and why.
- apiGroups: ['']
  resources: [events]
  verbs: [create]
# Asks Strimzi for a Kafka if a benchmark needs one.
- apiGroups: [kafka.strimzi.io]
  resources: [kafkas, kafkanodepools, kafkatopics, kafkausers]
  verbs: [list, create, delete]
# Removes the finalizers of a topic whose operator is gone, so that its namespace can be deleted.
- apiGroups: [kafka.strimzi.io]
  resources: [kafkatopics]
  verbs: [patch]
# Runs clients.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [list, watch, create, delete]
{{- end }}
{{- define "tierbench.rules.leases" -}}
# Reserves nodes for one benchmark at a time, and benchmarks for one operator, across all releases.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, list, watch, create, update, delete]
{{- end }}
{{- define "tierbench.rules.removal" -}}
# Removes benchmarks before the CRDs are deleted.
- apiGroups: [tierbench.io]
  resources: [filetransferbenchmarks, brokerbenchmarks, networkbenchmarks]
  verbs: [list, delete]
{{- end }}
{{- define "tierbench.rules.metrics" -}}
# Authenticates who reads metrics.
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
# Checks whether they are authorized.
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end }}
