// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "testing"

func TestParseIdentityReadsString(t *testing.T) {
	for _, want := range []ProjectIdentity{{ID: 4711, OwnerID: 17}, {ID: 1}} {
		if got, err := ParseIdentity(" " + want.String() + "\n"); err != nil || got != want {
			t.Errorf("%v: got %v, %v", want, got, err)
		}
	}
	for _, text := range []string{"", "17", "/", "17/", "/4711", "17/0", "-1/4711", "17/-4711", "a/b", "17/4711/1",
		"17/99999999999999999999"} {
		if got, err := ParseIdentity(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

func TestSameIgnoresUnknownOwner(t *testing.T) {
	for _, c := range []struct {
		a, b ProjectIdentity
		want bool
	}{
		{ProjectIdentity{1, 2}, ProjectIdentity{1, 2}, true},
		{ProjectIdentity{1, 2}, ProjectIdentity{1, 0}, true},
		{ProjectIdentity{1, 0}, ProjectIdentity{1, 2}, true},
		{ProjectIdentity{1, 2}, ProjectIdentity{1, 3}, false},
		{ProjectIdentity{1, 2}, ProjectIdentity{4, 2}, false},
		{ProjectIdentity{1, 0}, ProjectIdentity{4, 0}, false},
	} {
		if got := c.a.Same(c.b); got != c.want {
			t.Errorf("%v and %v: %t", c.a, c.b, got)
		}
	}
}
