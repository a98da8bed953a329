// SPDX-License-Identifier: Apache-2.0

//go:build race

package receiver_test

// raced is true under the race detector, which makes everything several times slower.
const raced = true
