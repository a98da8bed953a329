// SPDX-License-Identifier: Apache-2.0

// Package aws is empty: no key of AWS signs anything in a test.
package aws
