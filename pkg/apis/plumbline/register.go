// SPDX-License-Identifier: Apache-2.0

// Package plumbline names the API group of Plumbline's own kinds.
package plumbline

// GroupName is the API group of GitEvent, EventPayload, TombstonePage and RepositoryClaim.
const GroupName = "plumbline.dev"
