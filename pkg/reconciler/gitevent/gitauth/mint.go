// SPDX-License-Identifier: Apache-2.0

package gitauth

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz"
	"github.com/plumbline-ci/plumbline/pkg/authz/scope"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

// ReasonGlobalToken is the reason of a fault: a run would need the global Repository's token, which
// no tenant gets.
const ReasonGlobalToken = "GlobalTokenNotShared"

// Grant is what a git-auth secret is created from: its owner and a token.
type Grant struct {
	repository *pacv1alpha1.Repository
	token      provider.Token
}

// Mint asks the Git service for a token for one run of the event. If it was minted for the same run
// before and could not be written into the secret, Mint returns it again: a cluster that takes no
// writes must not cost a token at each attempt.
func (s Secrets) Mint(ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run) (Grant, error) {
	repository, err := owner(ctx, a)
	if err != nil {
		return Grant{}, err
	}
	client, err := a.Git.Connect(ctx)
	if err != nil {
		return Grant{}, err
	}
	if a.Git.Shared() && !a.Config.ShareGlobalToken {
		return Grant{}, fault.Operatorf(
			ReasonGlobalToken,
			"the token of Repository %s/%s is that of the global Repository, which is not written into this namespace: "+
				"name a Secret in git_provider.secret, or set share-global-token",
			repository.Namespace,
			repository.Name,
		)
	}
	granted, err := s.mayOf(ctx, a, run, repository, client)
	if err != nil {
		return Grant{}, err
	}
	key := place{a.Event.UID, run.Secret, granted.String()}
	if token, found := s.unplaced.get(key, a.Clock.Now()); found {
		return Grant{repository, token}, nil
	}
	token, err := client.CloneToken(ctx, granted.permissions, granted.others...)
	if err != nil {
		return Grant{}, fmt.Errorf("minting a token for the run: %w", err)
	}
	s.unplaced.put(key, token, Grant{token: token}.renewAt(a.Clock.Now()).Time)
	return Grant{repository, token}, nil
}

// owner returns the Repository that a run's secret belongs to.
func owner(ctx context.Context, a *attempt.Attempt) (*pacv1alpha1.Repository, error) {
	repository, err := a.Git.Repository(ctx)
	if err == nil && repository == nil {
		ref := a.Event.Spec.Repository
		err = fault.Operatorf(
			credentials.ReasonRepositoryGone,
			"Repository %s/%s is gone: its run cannot be given credentials",
			ref.Namespace,
			ref.Name,
		)
	}
	return repository, err
}

// may says what the token of a run may do.
type may struct {
	permissions config.Permissions
	others      []v1alpha1.Project
}

// String identifies it.
func (m may) String() string {
	text := fmt.Sprint(m.permissions)
	for _, other := range m.others {
		text += fmt.Sprint(" ", other.ID)
	}
	return text
}

// mayOf returns what the tokens of the event's runs may do. Permissions beyond reading, which the
// Repository requests, and other repositories are only for the repository's own code. The lists of
// other repositories may become wrong while a run exists: then its token is renewed without others.
func (s Secrets) mayOf(
	ctx context.Context,
	a *attempt.Attempt,
	run *v1alpha1.Run,
	repository *pacv1alpha1.Repository,
	client *provider.Client,
) (may, error) {
	reading, _ := a.Config.RunToken(nil)
	granted := may{permissions: reading}
	if !authz.OwnCode(a.Event) {
		return granted, nil
	}
	merged, err := a.Git.WithGlobal(ctx, repository)
	if err != nil {
		return granted, err
	}
	if settings := merged.Spec.Settings; settings != nil {
		granted.permissions, _ = a.Config.RunToken(settings.RunTokenPermissions)
	}
	others, skipped, err := s.scope.Others(ctx, scope.Request{
		Event: &a.Event.Spec, Repository: merged, Config: a.Config,
		Writes: !maps.Equal(granted.permissions, reading), Covered: client.Covered,
	})
	if run.UID != "" && fault.Is(err, fault.Operator) {
		skipped, err = []string{"other repositories: " + fault.Of(err).Message}, nil
	}
	if len(skipped) > 0 {
		a.Waits.WarningEvent(reasonNotCovered, "The tokens of runs do not reach "+strings.Join(skipped, "; ")+".")
	}
	granted.others = others
	return granted, err
}

// Readable returns the other repositories whose files an event of the repository's own code may
// refer to. The Repository is completed by the global one.
func (s Secrets) Readable(
	ctx context.Context,
	a *attempt.Attempt,
	repository *pacv1alpha1.Repository,
	client *provider.Client,
) ([]v1alpha1.Project, error) {
	others, _, err := s.scope.Others(ctx, scope.Request{
		Event: &a.Event.Spec, Repository: repository, Config: a.Config, Covered: client.Covered,
	})
	return others, err
}

// own returns the token if it was minted for the run, else "".
func (g Grant) own() string {
	if !g.token.Own {
		return ""
	}
	return g.token.Value
}

func (g Grant) secret(a *attempt.Attempt, run *v1alpha1.Run) *corev1.Secret {
	return resources.MakeGitAuthSecret(resources.SecretInput{
		Event:      a.Event,
		Repository: g.repository,
		Run:        run,
		Name:       run.Secret,
		Namespace:  run.Namespace,
		Token:      g.token.Value,
		Own:        g.token.Own,
		User:       g.token.User,
	})
}

// renewAt returns when half of the token's remaining life is over. The other half is for outages
// and differing clocks.
func (g Grant) renewAt(now time.Time) *metav1.Time {
	left := unknownLife
	if !g.token.ExpiresAt.IsZero() {
		left = g.token.ExpiresAt.Sub(now)
	}
	at := metav1.NewTime(now.Add(max(minRenewal, left/2)).Truncate(time.Second))
	return &at
}

// place is where a token is to be written, and what it may do.
type place struct {
	event  types.UID
	secret string
	may    string
}

// unplaced has the tokens that no secret has yet, as far as this process knows.
type unplaced struct {
	tokens recent.Map[place, waiting]
}

type waiting struct {
	token provider.Token
	until time.Time
}

func (u *unplaced) get(at place, now time.Time) (provider.Token, bool) {
	known, found := u.tokens.Get(at)
	return known.token, found && now.Before(known.until)
}

func (u *unplaced) put(at place, token provider.Token, until time.Time) {
	u.tokens.Put(at, waiting{token, until})
}

// placed forgets the tokens that were minted for a Secret, because the Secret has one of them now.
func (u *unplaced) placed(event types.UID, secret string) {
	u.tokens.DeleteFunc(func(at place) bool { return at.event == event && at.secret == secret })
}
