// SPDX-License-Identifier: Apache-2.0

// Package config is the one typed ConfigMap of an installation. A reconcile reads it once, from its
// context, so that a change while it runs cannot mix two configurations.
package config
