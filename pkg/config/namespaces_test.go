// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"
	"testing"
)

func TestNamespacesThatAreServed(t *testing.T) {
	for value, want := range map[string][]string{
		"":                      {"plumbline", "team-a", "team-b", "ci-1", "ci-1-x"},
		"team-a":                {"plumbline", "team-a"},
		"team-a, ci-1":          {"plumbline", "team-a", "ci-1"},
		"ci-*":                  {"plumbline", "ci-1", "ci-1-x"},
		"*-a\r\nci-1":           {"plumbline", "team-a", "ci-1"},
		"!team-b":               {"plumbline", "team-a", "ci-1", "ci-1-x"},
		"team-*,!team-b":        {"plumbline", "team-a"},
		"!plumbline, !ci-*":     {"plumbline", "team-a", "team-b"},
		"*":                     {"plumbline", "team-a", "team-b", "ci-1", "ci-1-x"},
		" team-a , team-b\tci*": {"plumbline", "team-a", "team-b", "ci-1", "ci-1-x"},
	} {
		store := NewStore(&recordingLogger{})
		store.OnConfigChanged(configMap(map[string]string{"serve-namespaces": value}))
		n := store.Load().Namespaces
		for _, namespace := range []string{"plumbline", "team-a", "team-b", "ci-1", "ci-1-x"} {
			if serves := slices.Contains(want, namespace); n.Serve(namespace) != serves || n.Leave(namespace) == serves {
				t.Errorf("%q serves %s: %t, leaves it: %t; want %t", value, namespace, n.Serve(namespace), n.Leave(namespace),
					serves)
			}
		}
	}
}

// A slip gives up no team's claims, and an installation that never knew better starts nothing.
func TestBadNamespacesChangeNothing(t *testing.T) {
	logger := &recordingLogger{}
	store := NewStore(logger)
	set := func(value string) Namespaces {
		store.OnConfigChanged(configMap(map[string]string{"serve-namespaces": value}))
		return store.Load().Namespaces
	}
	for _, bad := range []string{"Team_A", "team-a, team[b]", "!", ",", "-a"} {
		if n := set(bad); n.Broken == "" || n.Serve("team-a") || n.Leave("team-a") || !n.Serve("plumbline") {
			t.Errorf("%q at the start: %+v", bad, n)
		}
		said := logger.errors[len(logger.errors)-1]
		if !strings.Contains(said, `key "serve-namespaces"`) || !strings.Contains(said, `allowed: names of namespaces`) {
			t.Errorf("%q: logged %q", bad, said)
		}
	}
	set("team-a")
	if n := set("team_a"); !n.Serve("team-a") || n.Serve("team-b") || n.Broken != "" {
		t.Errorf("after a good value: %+v", n)
	}
}

func TestNamespacesAsAListOfNames(t *testing.T) {
	for value, want := range map[string]struct{ names, unmatched string }{
		"":                   {},
		"b, a, !c":           {"a b", "a"},
		"b, ci-*, x*, !team": {"", "x*"},
		"d, *":               {"", "d"},
	} {
		c, err := New(map[string]string{"serve-namespaces": value})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(c.Namespaces.Names(), " "); got != want.names {
			t.Errorf("%q: names %q, want %q", value, got, want.names)
		}
		if got := strings.Join(c.Namespaces.Unmatched([]string{"b", "ci-1"}), " "); got != want.unmatched {
			t.Errorf("%q: unmatched %q, want %q", value, got, want.unmatched)
		}
	}
}
