// SPDX-License-Identifier: Apache-2.0

// Package pipelinesascode names the API group that Plumbline shares with Pipelines-as-Code.
package pipelinesascode

// GroupName is the API group of Repository and the prefix of the labels and annotations on
// PipelineRuns.
const GroupName = "pipelinesascode.tekton.dev"
