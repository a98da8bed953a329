// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"runtime"
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// Annotate appends annotations, 50 at a time, to those that the check has.
func (g *fakeGit) Annotate(
	ctx context.Context, id string, check status.Check, lines []v1alpha1.SourceLine,
) error {
	if g.checks[id].Conclusion == "" || g.checks[id].Text != check.Text {
		g.env.t.Errorf("check %s is annotated before it is concluded and has its log", id)
	}
	if o := g.env.called("count annotations"); o.kill {
		runtime.Goexit()
	} else if o.err != nil {
		return o.err
	}
	for some := range slices.Chunk(lines[len(g.annotations[id]):], 50) {
		if err := provider.Fence(ctx); err != nil {
			return err
		}
		o := g.env.called("annotate")
		if o.err == nil && !o.kill || o.apply {
			g.annotations[id] = append(g.annotations[id], some...)
		}
		if o.kill {
			runtime.Goexit()
		}
		if o.err != nil {
			return o.err
		}
	}
	return nil
}
