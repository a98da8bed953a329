// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"hash/fnv"
	"testing"
)

// The tests have two tiers. `make test` (go test -short) runs the first one: each test on one Git
// service, unless its code depends on the service. `make test-all` runs both, each test on both
// services, and Tekton executes every run (runner_test.go). TestScenarioTableIsComplete and
// test/language read the marks in the sources: a test whose body has the line onlyInTestAll(t)
// belongs to the second tier. forBothServices and forBothKinds run on both services in both tiers.

// onlyInTestAll skips a test, or a case of one, that belongs to the second tier.
func onlyInTestAll(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs in make test-all")
	}
}

// onlyInTestAllUnless is onlyInTestAll for cases that make test leaves out.
func onlyInTestAllUnless(t *testing.T, first bool) {
	t.Helper()
	if !first {
		onlyInTestAll(t)
	}
}

// amount chooses how many of something a test has: few in make test, many in make test-all.
func amount(few, many int) int {
	if !testing.Short() {
		return many
	}
	return few
}

// bothKinds returns the Git services.
func bothKinds() []kind { return []kind{githubApp, gitLab} }

// kindsFor returns the services that a test runs on: in make test one, which the test's name
// chooses.
func kindsFor(t *testing.T) []kind {
	t.Helper()
	if !testing.Short() {
		return bothKinds()
	}
	name := fnv.New32a()
	_, _ = name.Write([]byte(t.Name()))
	return []kind{bothKinds()[name.Sum32()%2]}
}

// forEachKind runs a scenario that makes its own environments for each Git service of the tier, as
// subtests in parallel. The test itself runs in parallel with others, too.
func forEachKind(t *testing.T, scenario func(t *testing.T, on kind)) {
	t.Helper()
	forKinds(t, kindsFor(t), scenario)
}

// forBothKinds is forEachKind on both services in both tiers.
func forBothKinds(t *testing.T, scenario func(t *testing.T, on kind)) {
	t.Helper()
	forKinds(t, bothKinds(), scenario)
}

func forKinds(t *testing.T, kinds []kind, scenario func(t *testing.T, on kind)) {
	t.Helper()
	t.Parallel()
	for _, on := range kinds {
		t.Run(string(on), func(t *testing.T) {
			t.Parallel()
			scenario(t, on)
		})
	}
}

// forEachService runs a scenario for each Git service of the tier in an environment whose
// Repository owns its URL, and then looks for broken invariants there.
func forEachService(t *testing.T, s setup, scenario func(t *testing.T, env *environment)) {
	t.Helper()
	forEachKind(t, inEnvironment(s, scenario))
}

// forBothServices is forEachService on both services in both tiers.
func forBothServices(t *testing.T, s setup, scenario func(t *testing.T, env *environment)) {
	t.Helper()
	forBothKinds(t, inEnvironment(s, scenario))
}

func inEnvironment(s setup, scenario func(t *testing.T, env *environment)) func(t *testing.T, on kind) {
	return func(t *testing.T, on kind) {
		t.Helper()
		s := s
		s.service = on
		env := newClaimedEnvironment(t, s)
		scenario(t, env)
		env.requireInvariants()
	}
}
