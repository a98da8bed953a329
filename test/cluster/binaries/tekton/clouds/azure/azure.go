// SPDX-License-Identifier: Apache-2.0

// Package azure is empty: no key of Azure signs anything in a test.
package azure
