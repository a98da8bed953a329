// SPDX-License-Identifier: Apache-2.0

package delivery

import "testing"

// An event with a time that cannot be stored would be refused for ever.
func TestMomentFitsEvent(t *testing.T) {
	for text, want := range map[string]bool{"1777712400": true, "1777712400000": false, "253402300799": true,
		"253402300800": false, "-1": false, `"2026-05-02T09:00:00Z"`: true} {
		var m moment
		if err := m.UnmarshalJSON([]byte(text)); err != nil || (m.identity() != nil) != want || m.at.Year() > 9999 {
			t.Errorf("%s is read as %s, %v", text, m.at, err)
		}
	}
}
