// SPDX-License-Identifier: Apache-2.0

// Package language holds the corpus of the authors' language: payloads as a service sends them,
// what authors write, and what becomes of it.
package language
