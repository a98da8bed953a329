{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{/*
config/ is the only source of the objects (a symbolic link, whose files are in the package). The templates read its files
and change what the values change. Objects are a JSON array: a template of Helm returns text only.
*/}}
{{- define "plumbline.objects" -}}
{{- $objects := list }}
{{- range .files }}
{{- if not ($.root.Files.Get .) }}
{{- printf "this copy of the chart has no file %s: install a released package, which needs no symbolic links" . | fail }}
{{- end }}
{{- range splitList "\n---\n" ($.root.Files.Get .) }}
{{- /* The separator takes the newline that ends a text block. */}}
{{- with printf "%s\n" . | fromYaml }}
{{- if .metadata.namespace }}{{ $_ := set .metadata "namespace" $.root.Release.Namespace }}{{ end }}
{{- range .subjects }}{{ $_ := set . "namespace" $.root.Release.Namespace }}{{ end }}
{{- $objects = append $objects . }}
{{- end }}
{{- end }}
{{- end }}
{{- toJson $objects }}
{{- end }}

{{/* A value of a ConfigMap. Helm reads numbers as floats, and toString would write 1000000 as 1e+06. */}}
{{- define "plumbline.string" -}}
{{- if kindIs "string" . }}{{ . }}{{ else }}{{ toJson . }}{{ end }}
{{- end }}

{{/* Ports of a NetworkPolicy: ports, protocols. */}}
{{- define "plumbline.ports" -}}
{{- $ports := list }}
{{- range $port := .ports }}
{{- range $.protocols }}{{ $ports = append $ports (dict "port" $port "protocol" .) }}{{ end }}
{{- end }}
{{- toJson $ports }}
{{- end }}

{{/* The image of a component: root, name. */}}
{{- define "plumbline.image" -}}
{{- $image := .root.Values.image }}
{{- $digest := index $image.digests .name }}
{{- if and $digest (not $image.tag) }}
{{- printf "%s/%s@%s" $image.registry .name $digest }}
{{- else }}
{{- printf "%s/%s:%s" $image.registry .name ($image.tag | default .root.Chart.AppVersion) }}
{{- end }}
{{- end }}
