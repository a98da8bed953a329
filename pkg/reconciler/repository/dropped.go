// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

// reasonDropped is the reason of the Event of a Repository that has lost settings.
const reasonDropped = "SettingsDropped"

// reportDropped reports that an update has removed all settings of a Repository that
// Pipelines-as-Code does not have. Its watcher drops them when it writes the Repository.
func (r *Reconciler) reportDropped(before, after *pacv1alpha1.Repository) {
	if before == nil || after == nil || !r.settings.Load().PipelinesAsCode.Runs() || !r.IsLeaderFor(keyOf(after)) {
		return
	}
	if lost := before.Spec.OwnFields(); len(lost) > 0 && len(after.Spec.OwnFields()) == 0 {
		r.recorder.Eventf(after, corev1.EventTypeWarning, reasonDropped, "These settings were removed: %s. "+
			"If no user did that, it was Pipelines-as-Code when one of its PipelineRuns finished. "+
			"Add them again when its last one in this namespace has finished", strings.Join(lost, ", "))
	}
}
