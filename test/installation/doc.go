// SPDX-License-Identifier: Apache-2.0

// Package installation puts config/ on a test cluster and runs the built receiver and controller beside it, with the
// tokens of the ServiceAccounts that config/ makes: rights that are missing show.
package installation
