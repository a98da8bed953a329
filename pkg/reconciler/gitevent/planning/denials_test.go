// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// service answers who may write, and counts the questions.
type service struct {
	may   bool
	err   error
	calls int
	files map[string]string
	read  []string
}

func (s *service) CanWrite(context.Context, string) (bool, error) {
	s.calls++
	return s.may, s.err
}

func (s *service) Member(ctx context.Context, user string) (bool, error) {
	return s.CanWrite(ctx, user)
}

func (s *service) InTeam(ctx context.Context, _, user string) (bool, error) {
	return s.CanWrite(ctx, user)
}

func (s *service) Actor(_ context.Context, _ *v1alpha1.GitEventSpec, told string) (string, error) {
	return told, nil
}

// RootFiles returns files, or the error unread.
func (s *service) RootFiles(_ context.Context, names ...string) (map[string][]byte, error) {
	found := map[string][]byte{}
	for i, name := range names {
		text, there := s.files[name]
		if i > 0 && len(found) == 0 {
			break
		}
		s.read = append(s.read, name)
		switch {
		case text == "down":
			return nil, fault.Transientf("BadAnswer", "502")
		case text == "huge":
			return nil, fault.Invalidf("FileTooLarge", "%s is too large", name)
		case there:
			found[name] = []byte(text)
		}
	}
	return found, nil
}

// asking returns a decision at a time.
func (s *service) asking(d *Denials, now *time.Time) (*Access, *[]string) {
	told := &[]string{}
	return &Access{
		Service: s, Denials: d, Spec: &v1alpha1.GitEventSpec{
			Provider: "fake", Host: "git.example", Project: v1alpha1.Project{Owner: "acme", Name: "app", ID: 5},
		},
		Now:  func() time.Time { return *now },
		Tell: func(reason, message string) { *told = append(*told, reason+": "+message) },
	}, told
}

func TestDenialsAreCachedForAWhile(t *testing.T) {
	now := time.Unix(0, 0)
	s := &service{}
	a, _ := s.asking(&Denials{}, &now)
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
	if may, err := a.Member(t.Context(), "stranger"); !may || err != nil {
		t.Errorf("and says nothing of another right: %t, %v", may, err)
	}
	a.Asked = true
	want("unless somebody had the delivery sent again", "stranger", true, 1)
	a.Asked = false
	want("of nobody else", "writer", true, 1)
	want("and a yes is not", "writer", true, 1)
	a.Spec.Project.ID = 6
	want("nor is another project's no", "stranger", true, 1)
	a.Spec.Project.ID = 5
	a.Spec.Project.Owner = "evil"
	want("nor what is said in the name of another project's id", "stranger", true, 1)
	a.Spec.Project.Owner = "acme"
	now = now.Add(1)
	want("nor for longer", "stranger", true, 1)
	s.may = false
	want("a right that was taken away is gone at once", "writer", false, 1)
	s.err = errors.New("502")
	want("an error is no answer", "unknown", false, 1)
	s.err, s.may = nil, true
	want("and is not remembered", "unknown", true, 1)
}

func TestMissingTeamIsReportedOnce(t *testing.T) {
	now := time.Unix(0, 0)
	s := &service{err: fault.Invalidf(fault.ReasonTeamNotFound, "there is no such team")}
	a, told := s.asking(&Denials{}, &now)
	ask := func(team, user string, may bool, reason string, calls int) {
		t.Helper()
		before := s.calls
		got, err := a.InTeam(t.Context(), team, user)
		if f := fault.Of(err); got != may || (f != nil) != (reason != "") || f != nil && f.Reason != reason ||
			s.calls-before != calls {
			t.Errorf("%s in %s: %t, %v after %d calls, want %t %s after %d", user, team, got, err, s.calls-before, may, reason,
				calls)
		}
	}
	ask("gone", "ann", false, fault.ReasonTeamNotFound, 1)
	ask("Gone", "bob", false, fault.ReasonTeamNotFound, 0)
	if diff := cmp.Diff([]string{"TeamNotFound: there is no such team"}, *told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"gone": "there is no such team", "Gone": "there is no such team"},
		a.Teams); diff != "" {
		t.Errorf("teams (-want +got):\n%s", diff)
	}
	s.err, s.may = nil, true
	ask("there", "ann", true, "", 1)
	s.may = false
	ask("there", "bob", false, "", 1)
	ask("there", "bob", false, "", 0)
	ask("other", "bob", false, "", 1)
	now = now.Add(DenialLife)
	s.may = true
	ask("gone", "ann", true, "", 1)
	s.err = errors.New("502")
	ask("there", "zoe", true, "Error", 1)
	if diff := cmp.Diff(map[string]string{"gone": "", "Gone": "there is no such team", "there": "", "other": ""},
		a.Teams); diff != "" {
		t.Errorf("teams in the end (-want +got):\n%s", diff)
	}
}

// S25, S12: OWNERS are those of the default branch at one commit. Invalid files grant no rights and
// are reported once; unreadable ones are waited for.
func TestOwnersFileGrantsRights(t *testing.T) {
	const lists, aliases = "approvers: [ann, leads]\n", "aliases: {leads: [lea]}\n"
	for name, c := range map[string]struct {
		files   map[string]string
		in, out string
		read    string
		told    string
		waits   bool
	}{
		"none":  {nil, "", "ann", "OWNERS", "", false},
		"lists": {map[string]string{"OWNERS": lists}, "ann Ann", "eve lea", "OWNERS OWNERS_ALIASES", "", false},
		"aliases": {map[string]string{"OWNERS": lists, "OWNERS_ALIASES": aliases}, "ann lea", "eve leads",
			"OWNERS OWNERS_ALIASES", "", false},
		"aliases alone": {map[string]string{"OWNERS_ALIASES": aliases}, "", "lea", "OWNERS", "", false},
		"broken": {
			map[string]string{"OWNERS": "approvers: ["}, "", "ann", "OWNERS OWNERS_ALIASES", "OWNERS is not YAML", false,
		},
		"broken aliases": {map[string]string{"OWNERS": lists, "OWNERS_ALIASES": "["}, "", "ann", "OWNERS OWNERS_ALIASES",
			"OWNERS_ALIASES is not YAML", false},
		"5 MB": {map[string]string{"OWNERS": "huge"}, "", "ann", "OWNERS", "OWNERS is too large", false},
		"65 KiB": {map[string]string{"OWNERS": lists + strings.Repeat("#", 65<<10)}, "", "ann",
			"OWNERS OWNERS_ALIASES", "larger than 64 KiB", false},
		"an outage":         {map[string]string{"OWNERS": "down"}, "", "ann", "", "", true},
		"half an outage":    {map[string]string{"OWNERS": lists, "OWNERS_ALIASES": "down"}, "", "ann", "", "", true},
		"a name that is ''": {map[string]string{"OWNERS": "approvers: ['']"}, "", "ann", "OWNERS OWNERS_ALIASES", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			now, s := time.Unix(0, 0), &service{files: c.files}
			a, told := s.asking(&Denials{}, &now)
			for user, want := range map[string]bool{c.in: true, c.out: false} {
				for _, user := range strings.Fields(user) {
					got, err := a.Owner(t.Context(), user)
					if got != want || (err != nil) != c.waits {
						t.Errorf("%s: %t, %v", user, got, err)
					}
				}
			}
			if read := strings.Join(s.read, " "); !c.waits && read != c.read {
				t.Errorf("read %s, want %s, once", read, c.read)
			}
			if said := strings.Join(*told, " "); !strings.Contains(said, c.told) || (c.told == "") != (said == "") ||
				len(*told) > 1 {
				t.Errorf("told %q, want %q", said, c.told)
			}
			before := len(s.read)
			again, retold := s.asking(a.Denials, &now) // the next event of the same repository
			_, _ = again.Owner(t.Context(), "zoe")
			if nobody := c.in == "" && !c.waits; nobody != (len(s.read) == before) || len(*retold) != 0 {
				t.Errorf("the next event read %v and told %v", s.read[before:], *retold)
			}
		})
	}
}
