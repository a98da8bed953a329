// SPDX-License-Identifier: Apache-2.0

// Command caller calls strings.ToTitle and strings.Repeat, and not strings.ToUpperSpecial, for the
// test of the scan.
package main

import "strings"

func main() { println(strings.Repeat(strings.ToTitle("a"), 2)) }
