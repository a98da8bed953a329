// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds Repository, wire-compatible with the kind of the same name of
// Pipelines-as-Code, plus a status subresource.
//
// +k8s:deepcopy-gen=package
// +groupName=pipelinesascode.tekton.dev
package v1alpha1
