// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"fmt"
	"strings"
	"testing"
	"time"

	gl "github.com/xanzy/go-gitlab"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/test/forge"
	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

func TestRoles(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	b.CreateGroup("acme")
	levels := map[string]forgelab.Level{
		"guest": forgelab.Guest, "planner": forgelab.Planner, "reporter": forgelab.Reporter, "developer": forgelab.Developer, "owner": forgelab.Owner,
	}
	for name, level := range levels {
		id := b.AddUser(name).ID
		b.SetMember(testProject, name, level)
		for _, user := range []string{name, strings.ToUpper(name), fmt.Sprintf("id:%d", id)} {
			if got, err := b.client.CanWrite(t.Context(), user); err != nil || got != (level >= forgelab.Developer) {
				t.Errorf("%s: %t, %v", user, got, err)
			}
		}
	}
	id := b.AddUser("of-the-group").ID
	b.SetMember("acme", "of-the-group", forgelab.Maintainer)
	for _, user := range []string{"of-the-group", fmt.Sprintf("id:%d", id)} {
		if got, err := b.client.CanWrite(t.Context(), user); err != nil || !got {
			t.Errorf("%s, a member of the group above: %t, %v", user, got, err)
		}
	}
	b.SetBlocked("of-the-group", true)
	for _, user := range []string{"of-the-group", fmt.Sprintf("id:%d", id), "of-the", "develop", "id:0", "id:-1", "id:x", "id:", "id:999999", "developer/../owner"} {
		if got, err := b.client.CanWrite(t.Context(), user); err != nil || got {
			t.Errorf("%s: %t, %v, want false", user, got, err)
		}
	}
	if _, err := b.client.CanWrite(t.Context(), "id:99999999999999999999"); err != nil {
		t.Errorf("a number that no id is: %v", err)
	}
}

func TestAMembershipThatEndedIsNone(t *testing.T) {
	now := time.Date(2026, 5, 2, 0, 0, 0, 0, time.UTC)
	r := &repository{now: func() time.Time { return now }}
	for day, want := range map[string]bool{"2026-05-01": false, "2026-05-02": false, "2026-05-03": true} {
		end, err := gl.ParseISOTime(day)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.writes(&gl.ProjectMember{State: "active", AccessLevel: 30, ExpiresAt: &end}); got != want {
			t.Errorf("until %s: %t, want %t", day, got, want)
		}
	}
}

func TestAskingForARoleFailsClosed(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	for _, c := range []struct {
		user, route string
		do          forgelab.Action
		class       fault.Class
	}{
		{"dev", forgelab.RouteMembers, forgelab.NotFound404(), fault.Transient},
		{"dev", forgelab.RouteMembers, forge.Answer(200, nil, "null"), fault.Transient},
		{"id:7", forgelab.RouteMember, forge.ServerError502HTML(), fault.Transient},
		{"id:7", forgelab.RouteMember, forge.Answer(200, nil, `{"id":8,"state":"active","access_level":50}`), fault.Transient},
		{"id:7", forgelab.RouteMember, forgelab.Forbidden403(), fault.Operator},
	} {
		b.Inject(forgelab.Fault{Route: c.route, Count: 1, Do: c.do})
		if got, err := b.client.CanWrite(t.Context(), c.user); got || !fault.Is(err, c.class) {
			t.Errorf("%+v: %t, %v", c, got, err)
		}
	}
}
