// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"context"
	"slices"
	"strings"

	gl "github.com/xanzy/go-gitlab"
)

// adopt concludes the pending status that Pipelines-as-Code has left: it has the check's name, and
// no mark of a run. Pipelines-as-Code names no ref, so the status may be on any ref of the commit.
func (r *repository) adopt(ctx context.Context, at place, sha string, want wanted) (string, error) {
	at.ref = ""
	known, err := r.statuses(ctx, at, sha, want.name)
	if err != nil {
		return "", err
	}
	for i, left := range known {
		replaced := slices.ContainsFunc(known[:i], func(newer *gl.CommitStatus) bool {
			return newer.PipelineId == left.PipelineId
		})
		if open(left) && !replaced && !strings.HasSuffix(left.Description, ")") {
			return r.set(ctx, at, sha, want, left.PipelineId)
		}
	}
	return "", nil
}
