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

// Service is the Git service's part (provider.Access has the contract).
type Service interface {
	CanWrite(ctx context.Context, user string) (bool, error)
	Member(ctx context.Context, user string) (bool, error)
	InTeam(ctx context.Context, team, user string) (bool, error)
	Actor(ctx context.Context, event *v1alpha1.GitEventSpec, told string) (string, error)
	RootFiles(ctx context.Context, names ...string) (map[string][]byte, error)
}

// Access asks the Git service who may do what in the event's project. Only denials are cached;
// permissions are always checked live.
type Access struct {
	Service
	Denials *Denials
	Spec    *v1alpha1.GitEventSpec
	// Asked is true if an account that may administrate the repository has redelivered the event:
	// then cached denials do not count.
	Asked bool
	Now   func() time.Time
	// Tell is called with a problem that the authors of the Repository's settings or of OWNERS must
	// fix: once each time it is met, and not while it is cached.
	Tell func(reason, message string)
	// Teams has the teams that were asked for, with what is wrong with each, "" if the service
	// shows it. It is nil before the first.
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

// InTeam reports whether the user is in a team. A team that does not exist is an Invalid fault,
// which is reported once and cached.
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

// shows records whether the service shows a team.
func (a *Access) shows(team string, why error) {
	if a.Teams == nil {
		a.Teams = map[string]string{}
	}
	a.Teams[team] = ""
	if f := fault.Of(why); f != nil {
		a.Teams[team] = f.Message
	}
}

// unlessDenied calls ask unless a recent denial is cached. An error is not cached.
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

// key identifies a question in the event's project. It has the project's path, too: of a service
// that signs nothing, only the delivery has the ID, and a user's own project must not answer for
// another one. No service distinguishes upper and lower case in names.
func (a *Access) key(what, who string) string {
	p := a.Spec.Project
	return strings.ToLower(
		fmt.Sprintf("%s %s %s/%s %d %s %s", a.Spec.Provider, a.Spec.Host, p.Owner, p.Name, p.ID, what, who),
	)
}
