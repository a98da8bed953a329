// SPDX-License-Identifier: Apache-2.0

package match

import (
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
)

// labelled returns the decision against a pipeline that does not read labels: it must not run again
// for each label that is added.
func labelled(ev Event, annotations map[string]string) (Selection, error) {
	if _, found := annotations[pipelinesascode.OnLabel]; found || ev.EventType != LabelEvent {
		return Selection{}, nil
	}
	return declined("a label was added, and there is no annotation on-label%s",
		misspelt(annotations, pipelinesascode.OnLabel)), nil
}

func onLabel(ev Event, annotations map[string]string) (Selection, error) {
	wanted, found, err := lookup(annotations, pipelinesascode.OnLabel)
	if err != nil || !found {
		return Selection{}, err
	}
	for _, label := range ev.Labels {
		if slices.Contains(wanted, label) {
			return agrees("on-label includes %s", label), nil
		}
	}
	return declined("on-label %s includes none of the labels %s%s", show(wanted), show(ev.Labels),
		hint(annotations, pipelinesascode.OnLabel)), nil
}
