{{- /* Refuses what Helm's schema cannot see: values of an older chart, and releases that would run the same benchmarks. */ -}}
{{- define "tierbench.validate" -}}
{{- range splitList " " (include "tierbench.sections" .) }}
{{- $found := $.Values }}
{{- range splitList "." . }}
{{- $found = get ($found | default dict) . }}
{{- end }}
{{- if not (kindIs "map" $found) }}
{{- fail (printf "there is no %s in the values, which are those of an older chart: upgrade with --reset-then-reuse-values in place of --reuse-values" .) }}
{{- end }}
{{- end }}
{{- $ours := .Values.watchNamespaces }}
{{- if not (or $ours .Values.allNamespaces) }}
{{- fail "say whose benchmarks this release runs: watchNamespaces={team-a,team-b}, or allNamespaces=true, with which the operator may create and delete pods and Secrets in the whole cluster" }}
{{- end }}
{{- if and $ours .Values.allNamespaces }}
{{- fail "watchNamespaces and allNamespaces say different things: leave one of them out" }}
{{- end }}
{{- if not (or .Values.operator.serviceAccount.create .Values.operator.serviceAccount.name) }}
{{- fail "operator.serviceAccount.create is false: write the name of your account in operator.serviceAccount.name" }}
{{- end }}
{{- if has .Values.leases.namespace $ours }}
{{- fail (printf "watchNamespaces holds %s, the namespace of the Leases: keep benchmarks in another one" .Values.leases.namespace) }}
{{- end }}
{{- if has .Release.Namespace $ours }}
{{- fail (printf "watchNamespaces holds %s, the release's own namespace: benchmarks run pods there, and their authors could act as the operator: keep benchmarks in another one" .Release.Namespace) }}
{{- end }}
{{- if and .Values.operator.runAsUser (eq (toString .Values.operator.runAsUser) (toString .Values.workloads.runAsUser)) }}
{{- fail (printf "operator.runAsUser and workloads.runAsUser are both %d: what runs for benchmarks could read the operator's token; write another number in one of them" (int64 .Values.operator.runAsUser)) }}
{{- end }}
{{- /* Without a cluster, lookup finds nothing. */ -}}
{{- if lookup "v1" "Namespace" "" "default" }}
{{- range $ours }}
{{- if not (lookup "v1" "Namespace" "" .) }}
{{- fail (printf "there is no namespace %s, where the chart makes a Role: create it (kubectl create namespace %s), or leave it out of watchNamespaces" . .) }}
{{- end }}
{{- end }}
{{- end }}
{{- $ownName := include "tierbench.sharedName" . }}
{{- range (lookup "rbac.authorization.k8s.io/v1" "ClusterRole" "" "").items }}
{{- $annotations := .metadata.annotations | default dict }}
{{- if eq .metadata.name $ownName }}
{{- include "tierbench.validateLeftOut" (list $ (get $annotations "tierbench.io/watch-namespaces")) }}
{{- else if hasKey $annotations "tierbench.io/watch-namespaces" }}
{{- $theirs := get $annotations "tierbench.io/watch-namespaces" | splitList "," | compact }}
{{- if or (not $ours) (not $theirs) }}
{{- fail (printf "release %s runs benchmarks in %s, and this one would in %s: name other namespaces for each in watchNamespaces" .metadata.name (join ", " $theirs | default "all namespaces") (join ", " $ours | default "all namespaces")) }}
{{- end }}
{{- range $ours }}
{{- if has . $theirs }}
{{- fail (printf "another release runs the benchmarks of namespace %s already: leave it out of watchNamespaces" .) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- /* Refuses to leave out a namespace with active benchmarks: no other operator would end their pods and release their nodes. */ -}}
{{- define "tierbench.validateLeftOut" -}}
{{- $root := index . 0 }}
{{- $before := index . 1 }}
{{- $ours := $root.Values.watchNamespaces }}
{{- if and $ours (ne $before (join "," $ours)) }}
{{- range $kind := splitList " " (include "tierbench.kinds" $root) }}
{{- if $root.Capabilities.APIVersions.Has (printf "tierbench.io/v1alpha1/%s" $kind) }}
{{- range (lookup "tierbench.io/v1alpha1" $kind "" "").items }}
{{- $namespace := .metadata.namespace }}
{{- $phase := get (.status | default dict) "phase" | default "Pending" }}
{{- $watched := or (not $before) (has $namespace (splitList "," $before)) }}
{{- if and $watched (not (has $namespace $ours)) (not (has $phase (list "Suspended" "Complete" "Failed"))) }}
{{- fail (printf "%s %s/%s is active, and this release would no longer run benchmarks in %s: suspend or delete it first, or keep %s in watchNamespaces" $kind $namespace .metadata.name $namespace $namespace) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
