{{- /* Values that are sound by themselves and contradict each other: one sentence for the first. */ -}}
{{- define "spillway.refusals" -}}
{{- $scaling := .Values.autoscaling -}}
{{- if gt (int $scaling.minReplicas) (int $scaling.maxReplicas) -}}
{{- fail (printf "autoscaling.minReplicas is %d, above autoscaling.maxReplicas, which is %d." (int $scaling.minReplicas) (int $scaling.maxReplicas)) -}}
{{- end -}}
{{- if and $scaling.enabled (not (kindIs "invalid" .Values.replicas)) -}}
{{- fail (printf "replicas is %d, but the autoscaler sets their number: leave it out, or autoscaling.enabled." (int .Values.replicas)) -}}
{{- end -}}
{{- if and (not $scaling.enabled) $scaling.admissionPercent -}}
{{- fail (printf "autoscaling.admissionPercent is %d, but there is no autoscaler: set autoscaling.enabled." (int $scaling.admissionPercent)) -}}
{{- end -}}
{{- $replicas := include "spillway.replicas" . | int -}}
{{- $spared := int .Values.disruptionBudget.minAvailable -}}
{{- if ge $spared $replicas -}}
{{- fail (printf "disruptionBudget.minAvailable is %d, and there may be %d of the pods: no node could drain. Give at most %d." $spared $replicas (sub $replicas 1)) -}}
{{- end -}}
{{- $tls := .Values.tls -}}
{{- if and $tls.enabled (not $tls.secret) -}}
{{- fail "tls.enabled takes a certificate: name its Secret in tls.secret." -}}
{{- end -}}
{{- if and (not $tls.enabled) (or $tls.secret $tls.clientCaSecret) -}}
{{- fail (printf "tls.%s names the Secret %s, but the port is plaintext: set tls.enabled." (ternary "secret" "clientCaSecret" (ne $tls.secret "")) ($tls.secret | default $tls.clientCaSecret)) -}}
{{- end -}}
{{- if and (not $tls.enabled) $tls.issuer.name -}}
{{- fail (printf "tls.issuer.name is %s, but the port is plaintext: set tls.enabled." $tls.issuer.name) -}}
{{- end -}}
{{- $journal := .Values.journal -}}
{{- range $name := list "fileMiB" "files" "claim" -}}
{{- $value := get $journal $name -}}
{{- if and $value (not $journal.enabled) -}}
{{- fail (printf "journal.%s is %v, but no journal is written: set journal.enabled." $name $value) -}}
{{- end -}}
{{- end -}}
{{- $fileMiB := $journal.fileMiB | default 64 | int -}}
{{- $files := $journal.files | default 8 | int -}}
{{- $room := mul $files $fileMiB | int -}}
{{- if and $journal.enabled (not $journal.claim) (gt $room (int $journal.volumeMiB)) -}}
{{- fail (printf "journal.volumeMiB is %d, and %d files of %d MiB may take %d: the pod would be evicted." (int $journal.volumeMiB) $files $fileMiB $room) -}}
{{- end -}}
{{- $ours := dict "--listen" "the proxy is before it" "--insecure" "the proxy is before it" "--tls-cert" "see tls" "--tls-key" "see tls" "--tls-client-ca" "see tls" "--metrics-listen" "the Service leads there" "--memory-budget" "it follows resources.server.limits.memory" "--max-inflight-bytes" "it follows resources.server.limits.memory" "--drain-delay" "see drain.delaySeconds" "--drain-timeout" "see drain.timeoutSeconds" "--log-format" "it is json" "--journal" "see journal" "--journal-file-bytes" "see journal.fileMiB" "--journal-files" "see journal.files" -}}
{{- range .Values.extraArgs -}}
{{- $flag := splitList "=" . | first -}}
{{- if hasKey $ours $flag -}}
{{- fail (printf "extraArgs has %s, which the chart sets: %s." $flag (get $ours $flag)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
