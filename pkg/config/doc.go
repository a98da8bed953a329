// SPDX-License-Identifier: Apache-2.0

// Package config reads the ConfigMap of an installation. A reconcile takes the configuration from
// its context, once: a change during the reconcile cannot mix two configurations.
package config
