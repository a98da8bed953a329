// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// Main reads the flags and runs a command until it ends or is interrupted. An error ends the
// process with 1.
func Main(name string, run func(ctx context.Context) error) {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "\n✗ %s: %v\n", name, err)
		os.Exit(1)
	}
}

// Numbers reads the value of a flag like "1,10"; an empty one is none.
func Numbers[T int | float64](name, list string) (out []T, err error) {
	for word := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' }) {
		n, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
		if err != nil || T(n) <= 0 {
			return nil, fmt.Errorf("%s=%s: %q is not a number above 0; put commas between several", name, list, word)
		}
		out = append(out, T(n))
	}
	return out, nil
}
