// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz/owners"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Service is who is asked (provider.Access has the contract).
type Service interface {
	CanWrite(ctx context.Context, user string) (bool, error)
	Member(ctx context.Context, user string) (bool, error)
	InTeam(ctx context.Context, team, user string) (bool, error)
	Actor(ctx context.Context, event *v1alpha1.GitEventSpec, told string) (string, error)
	RootFiles(ctx context.Context, names ...string) (map[string][]byte, error)
}

// Access asks the Git service who may do what in the event's project, unless it is known that
// somebody may not. A yes is always the service's, as it is now.
type Access struct {
	Service
	Denials *Denials
	Spec    *v1alpha1.GitEventSpec
	// Asked is true when somebody who may administrate the repository had the delivery sent again:
	// it is asked for then.
	Asked bool
	Now   func() time.Time
	// Tell is called with what people have to mend who write the Repository's settings or OWNERS:
	// once each time it is met, and not while it is remembered.
	Tell func(reason, message string)
	// Teams are those that were asked about: what is wrong with each, "" if the service shows it.
	// nil is none yet.
	Teams map[string]string

	owners *owners.People // once they are read
}

// CanWrite reports whether the user can write to the repository.
func (a *Access) CanWrite(ctx context.Context, user string) (bool, error) {
	return a.unlessDenied("writes", user, func() (bool, error) { return a.Service.CanWrite(ctx, user) })
}

// Member reports whether the user belongs to the repository or its organization.
func (a *Access) Member(ctx context.Context, user string) (bool, error) {
	return a.unlessDenied("member", user, func() (bool, error) { return a.Service.Member(ctx, user) })
}

// InTeam reports whether the user is in a team. That there is no such team is an Invalid fault,
// which is told once and remembered.
func (a *Access) InTeam(ctx context.Context, team, user string) (bool, error) {
	if held, why := a.denied("no team", team); held {
		a.shows(team, why)
		return false, why
	}
	may, err := a.unlessDenied("team", team+" "+user, func() (bool, error) { return a.Service.InTeam(ctx, team, user) })
	if err == nil || fault.Is(err, fault.Invalid) {
		a.shows(team, err)
	}
	if fault.Is(err, fault.Invalid) {
		a.deny("no team", team, err)
		f := fault.Of(err)
		a.Tell(f.Reason, f.Message)
	}
	return may, err
}

// shows notes whether the service shows a team.
func (a *Access) shows(team string, why error) {
	if a.Teams == nil {
		a.Teams = map[string]string{}
	}
	a.Teams[team] = ""
	if f := fault.Of(why); f != nil {
		a.Teams[team] = f.Message
	}
}

// unlessDenied asks, unless the answer was no shortly before. An error is no answer.
func (a *Access) unlessDenied(what, who string, ask func() (bool, error)) (bool, error) {
	if held, why := a.denied(what, who); held {
		return false, why
	}
	may, err := ask()
	if err == nil && !may {
		a.deny(what, who, nil)
	}
	return may, err
}

func (a *Access) denied(what, who string) (held bool, why error) {
	if a.Asked {
		return false, nil
	}
	return a.Denials.holds(a.key(what, who), a.Now())
}

func (a *Access) deny(what, who string, why error) { a.Denials.note(a.key(what, who), why, a.Now()) }

// key is a question in the event's project, by the path that is asked about as well: of a service
// that signs nothing the id is only what a delivery says, and somebody's own project must not
// answer for another one. No service tells cases apart in names.
func (a *Access) key(what, who string) string {
	p := a.Spec.Project
	return strings.ToLower(
		fmt.Sprintf("%s %s %s/%s %d %s %s", a.Spec.Provider, a.Spec.Host, p.Owner, p.Name, p.ID, what, who),
	)
}
