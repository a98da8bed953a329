// SPDX-License-Identifier: Apache-2.0

package podsecurity

import (
	"errors"
	"testing"
	"time"
)

func free(time.Duration) error { return nil }

// The work of a check grows with the values, with the texts, and with the parts of pods that they
// are in. Each limit checks all of them.
func TestCheckPacesItsWork(t *testing.T) {
	t.Parallel()
	paced := func(spec string, limits ...Limits) (all time.Duration) {
		pace := func(more time.Duration) error { all += more; return nil }
		if err := Check(inCustomTask(spec), "x", pace, limits...); err != nil {
			t.Error(spec, err)
		}
		return all
	}
	level := Limits{PodSecurity: Baseline}
	one := paced(`{"steps":[{"name":"x"}]}`, level)
	for name, c := range map[string]struct {
		took, atLeast time.Duration
	}{
		"accounts":         {-paced(`{"steps":[{"name":"x"}]}`, Limits{ServiceAccounts: []string{"x"}}), 0},
		"two levels":       {paced(`{"steps":[{"name":"x"}]}`, level, level), 2 * one},
		"another step":     {paced(`{"steps":[{"name":"x"},{}]}`, level), one + perPart + perValue},
		"a long name":      {paced(`{"steps":[{"name":"xxxxxxxxxxx"}]}`, level), one + 10*perByte},
		"a part in a part": {paced(`{"podTemplate":{"steps":[{"name":"x"}]}}`, level), one + perPart + 4*perValue},
	} {
		if c.took < c.atLeast {
			t.Errorf("%s takes %v, want at least %v (%v for one step)", name, c.took, c.atLeast, one)
		}
	}
}

func TestCheckIsNotMadeIfItsWorkIsRefused(t *testing.T) {
	t.Parallel()
	busy := errors.New("busy")
	pace := func(time.Duration) error { return busy }
	err := Check(inCustomTask(`{"hostNetwork":true}`), "x", pace, Limits{PodSecurity: Baseline})
	if !errors.Is(err, busy) {
		t.Errorf("%v, want the error of the pace", err)
	}
}
