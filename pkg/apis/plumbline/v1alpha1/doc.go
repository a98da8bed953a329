// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds Plumbline's own kinds: GitEvent (one accepted delivery and its result),
// EventPayload (a part of an immutable blob that a GitEvent refers to), RepositoryClaim (which
// Repository owns a URL) and TombstonePage (deliveries of deleted GitEvents).
//
// +k8s:deepcopy-gen=package
// +groupName=plumbline.dev
package v1alpha1
