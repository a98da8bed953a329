// SPDX-License-Identifier: Apache-2.0

package match

import (
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
)

// AsMergeGroup returns the event of the merge group whose branch a push is to. GitHub sends both.
// ok is false for every other event.
func AsMergeGroup(ev Event) (group Event, ok bool) {
	name, found := strings.CutPrefix(ev.BaseRef, git.MergeQueues)
	end := strings.LastIndex(name, "/pr-")
	if !found || end < 0 || ev.Trigger != v1alpha1.TriggerPush || ev.EventType == CommentEvent {
		return ev, false
	}
	group = ev
	group.Trigger, group.EventType = v1alpha1.TriggerMergeGroup, string(v1alpha1.TriggerMergeGroup)
	group.BaseRef, group.HeadRef = name[:end], strings.TrimPrefix(ev.BaseRef, branchPrefix)
	return group, true
}

// QueueDecides reports whether a push is to the branch of a merge group whose own event decides
// about the pipeline. What the group changes does not matter: the push is of a new branch and does
// not know it.
func QueueDecides(ev Event, p Pipeline) bool {
	group, is := AsMergeGroup(ev)
	if !is {
		return false
	}
	group.Changed = nil
	decision, err := Select(group, p)
	return err == nil && (decision.Selected || decision.Needs.Changed)
}
