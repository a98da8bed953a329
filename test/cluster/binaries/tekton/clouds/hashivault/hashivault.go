// SPDX-License-Identifier: Apache-2.0

// Package hashivault is empty: no key of Vault signs anything in a test.
package hashivault
