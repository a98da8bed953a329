// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// CloneToken mints another token for each run.
func (g *fakeGit) CloneToken(
	_ context.Context,
	permissions map[string]string,
	others ...v1alpha1.Project,
) (provider.Token, error) {
	o := g.env.called("mint token")
	var token provider.Token
	if o.err == nil || o.apply {
		token = provider.Token{
			User: "bot", Value: fmt.Sprint("token-", len(g.tokens)+1), ExpiresAt: g.env.clock.Now().Add(g.life()), Own: true,
		}
		g.tokens, g.permissions, g.others = append(g.tokens, token), permissions, others
	}
	if o.kill {
		runtime.Goexit()
	}
	return token, o.err
}

// Covered returns the repositories of the fake installation.
func (g *fakeGit) Covered(context.Context) ([]v1alpha1.Project, error) {
	g.listed++
	return g.covered, g.err
}

func (g *fakeGit) RevokeToken(_ context.Context, token string) error {
	o := g.env.called("revoke token")
	if o.err == nil || o.apply {
		g.revoked = append(g.revoked, token)
	}
	if o.kill {
		runtime.Goexit()
	}
	return o.err
}

func (g *fakeGit) life() time.Duration {
	if g.tokenLife > 0 {
		return g.tokenLife
	}
	return time.Hour
}
