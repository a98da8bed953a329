// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// service answers who may write, and counts how often it is asked.
type service struct {
	may   bool
	err   error
	calls int
}

func (s *service) CanWrite(context.Context, string) (bool, error) {
	s.calls++
	return s.may, s.err
}

func (s *service) Actor(_ context.Context, _ *v1alpha1.GitEventSpec, told string) (string, error) {
	return told, nil
}

func TestDenials(t *testing.T) {
	now := time.Unix(0, 0)
	s, spec := &service{}, &v1alpha1.GitEventSpec{Provider: "fake", Host: "git.example", Project: v1alpha1.Project{ID: 5}}
	a := Access{Access: s, Denials: &Denials{}, Spec: spec, Now: func() time.Time { return now }}
	want := func(why, user string, may bool, calls int) {
		t.Helper()
		before := s.calls
		got, err := a.CanWrite(t.Context(), user)
		if got != may || !errors.Is(err, s.err) || s.calls-before != calls {
			t.Errorf("%s: %t, %v after %d calls, want %t after %d", why, got, err, s.calls-before, may, calls)
		}
	}
	want("a no", "stranger", false, 1)
	s.may = true
	now = now.Add(DenialLife - 1)
	want("is remembered", "Stranger", false, 0)
	a.Asked = true
	want("unless somebody had the delivery sent again", "stranger", true, 1)
	a.Asked = false
	want("of nobody else", "writer", true, 1)
	want("and a yes is not", "writer", true, 1)
	spec.Project.ID = 6
	want("nor is another project's no", "stranger", true, 1)
	spec.Project.ID = 5
	now = now.Add(1)
	want("nor for longer", "stranger", true, 1)
	s.may = false
	want("a right that was taken away is gone at once", "writer", false, 1)
	s.err = errors.New("502")
	want("an error is no answer", "unknown", false, 1)
	s.err, s.may = nil, true
	want("and is not remembered", "unknown", true, 1)
	s.may = false
	for i := range 2 * maxDenials {
		_, _ = a.CanWrite(t.Context(), fmt.Sprint("user", i))
	}
	if n := len(a.Denials.seen); n > maxDenials {
		t.Errorf("%d are remembered, want at most %d", n, maxDenials)
	}
}
