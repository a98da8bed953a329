// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds Plumbline's own kinds: GitEvent (one accepted delivery and what became of
// it), EventPayload (an immutable blob that a GitEvent refers to) and RepositoryClaim (who owns a
// repository URL).
//
// +k8s:deepcopy-gen=package
// +groupName=plumbline.dev
package v1alpha1
