// SPDX-License-Identifier: Apache-2.0

// Package gcp is empty: no key of Google Cloud signs anything in a test.
package gcp
