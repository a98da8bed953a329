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

func TestCanWriteByRole(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	b.CreateGroup("acme")
	levels := map[string]forgelab.Level{
		"guest": forgelab.Guest, "planner": forgelab.Planner, "reporter": forgelab.Reporter, "developer": forgelab.Developer,
		"owner": forgelab.Owner,
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
	for _, user := range []string{"of-the-group", fmt.Sprintf("id:%d", id), "of-the", "develop", "id:0", "id:-1", "id:x",
		"id:", "id:999999", "developer/../owner"} {
		if got, err := b.client.CanWrite(t.Context(), user); err != nil || got {
			t.Errorf("%s: %t, %v, want false", user, got, err)
		}
	}
	if _, err := b.client.CanWrite(t.Context(), "id:99999999999999999999"); err != nil {
		t.Errorf("a number that no id is: %v", err)
	}
}

func TestEndedMembershipDoesNotCount(t *testing.T) {
	now := time.Date(2026, 5, 2, 0, 0, 0, 0, time.UTC)
	for day, want := range map[string]bool{"2026-05-01": false, "2026-05-02": false, "2026-05-03": true} {
		end, err := gl.ParseISOTime(day)
		if err != nil {
			t.Fatal(err)
		}
		if got := (&member{State: "active", Level: 30, Ends: &end}).counts(30, now); got != want {
			t.Errorf("until %s: %t, want %t", day, got, want)
		}
	}
}

// A user beyond the paid seats is listed with a role but has no rights yet. The free edition does
// not show it at all.
func TestAwaitingMembershipDoesNotCount(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	b.CreateGroup("acme/team")
	b.SetMember("acme/team", b.token.User.Username, forgelab.Guest)
	id := b.AddUser("waits").ID
	b.SetMember("acme/team", "waits", forgelab.Owner)
	for _, awaits := range []bool{true, false} {
		b.SetAwaiting("acme/team", "waits", awaits)
		for _, user := range []string{"waits", fmt.Sprintf("id:%d", id)} {
			writes, err := b.client.CanWrite(t.Context(), user)
			is, err2 := b.client.Member(t.Context(), user)
			in, err3 := b.client.InTeam(t.Context(), "acme/team", user)
			if err != nil || err2 != nil || err3 != nil || writes == awaits || is == awaits || in == awaits {
				t.Errorf("%s, who awaits: %t: writes %t, is a member %t, is in the group %t: %v %v %v", user, awaits, writes, is,
					in, err, err2, err3)
			}
		}
	}
	for answer, want := range map[string]bool{
		`{"state":"active"}`: true, `{"state":"active","membership_state":null}`: true,
		`{"state":"active","membership_state":""}`:      false,
		`{"state":"active","membership_state":"later"}`: false, `{"state":"blocked","membership_state":"active"}`: false,
	} {
		b.Inject(forgelab.Fault{Route: forgelab.RouteMembers, Count: 1,
			Do: forge.Answer(200, nil, `[{"id":7,"username":"waits","access_level":40,`+answer[1:]+`]`)})
		if got, err := b.client.CanWrite(t.Context(), "waits"); err != nil || got != want {
			t.Errorf("%s: %t, %v, want %t", answer, got, err, want)
		}
	}
}

func TestCanWriteFailsClosed(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	for _, c := range []struct {
		user, route string
		do          forgelab.Action
		class       fault.Class
	}{
		{"dev", forgelab.RouteMembers, forgelab.NotFound404(), fault.Transient},
		{"dev", forgelab.RouteMembers, forge.Answer(200, nil, "null"), fault.Transient},
		{"id:7", forgelab.RouteMember, forge.ServerError502HTML(), fault.Transient},
		{"id:7", forgelab.RouteMember, forge.Answer(200, nil, `{"id":8,"state":"active","access_level":50}`),
			fault.Transient},
		{"id:7", forgelab.RouteMember, forgelab.Forbidden403(), fault.Operator},
	} {
		b.Inject(forgelab.Fault{Route: c.route, Count: 1, Do: c.do})
		if got, err := b.client.CanWrite(t.Context(), c.user); got || !fault.Is(err, c.class) {
			t.Errorf("%+v: %t, %v", c, got, err)
		}
	}
}
