// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"
)

func TestBuildReportsTimeLeft(t *testing.T) {
	todo := []binary{{usual: 10 * time.Second}, {usual: time.Minute}, {usual: 30 * time.Second}}
	for _, test := range []struct {
		about       string
		at          int
		before, now time.Duration
		want        string
	}{
		{"at the start it is what is usual", 0, 0, 0, "2 min"},
		{"what has been built of the first one counts", 0, 0, 9 * time.Second, "2 min"},
		{"a machine that took twice as long goes on like that", 1, 20 * time.Second, 0, "3 min"},
		{"a machine that took half as long goes on like that", 1, 5 * time.Second, 10 * time.Second, "40 s"},
		{"the first one that takes long already tells that of the others too", 0, 0, 20 * time.Second, "3 min"},
		{"the last one that takes longer than it should is about to end", 2, 70 * time.Second, time.Hour, "1 s"},
	} {
		t.Run(test.about, func(t *testing.T) {
			if got := about(left(todo, test.at, test.before, test.now)); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}
