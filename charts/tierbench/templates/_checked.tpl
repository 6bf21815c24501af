{{- /* Generated from operator/src/tierbench/api/rbac.py and generate/values.py: change that, then run `make generate`. */ -}}
{{- define "tierbench.operatorsOwn" -}}
- benchmarkresults
- benchmarkrecords
- benchmarkresults/status
- benchmarkrecords/status
- filetransferbenchmarks/status
- brokerbenchmarks/status
- networkbenchmarks/status
- placementadvices/status
- nodeclasses/status
{{- end }}
{{- define "tierbench.sections" -}}
global operator operator.image operator.podDisruptionBudget operator.serviceAccount operator.resources workloads client client.image nginx nginx.image transfer transfer.image mosquitto mosquitto.image kafka kafka.image paho paho.image sinetstream sinetstream.image network network.image limits writers crds leases policy metrics metrics.serviceMonitor metrics.prometheusRule metrics.dashboards collector networkPolicies
{{- end }}
{{- define "tierbench.kinds" -}}
BrokerBenchmark FileTransferBenchmark NetworkBenchmark
{{- end }}
