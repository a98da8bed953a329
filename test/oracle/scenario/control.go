// SPDX-License-Identifier: Apache-2.0

package scenario

import "fmt"

// control draws limits of concurrent runs for some scenarios, and numbers of kept runs for others.
// All runs of these scenarios end by themselves. Otherwise a held run would keep the slot, and
// only Pipelines-as-Code has a PipelineRun for a run that waits.
func (d drawer) control(s *Scenario) {
	switch d.IntN(6) {
	case 0:
		s.Limit = 1
		for len(s.Pipelines) < 3 { // of one run alone a limit shows nothing
			s.Pipelines = append(s.Pipelines, d.pipeline(len(s.Pipelines), s.Acts[0], true))
		}
	case 1:
		for i := range s.Pipelines {
			s.Pipelines[i].Keeps = pick(d, "1", "1", "2")
		}
		s.Acts = append(s.Acts, d.again(s.Acts[0])...)
	}
}

// again starts the pipelines again a few times.
func (d drawer) again(first Act) []Act {
	var acts []Act
	for n := range 2 + d.IntN(2) {
		switch first.Kind {
		case Push:
			acts = append(acts, Act{Kind: Push, By: first.By, Branch: first.Branch, Path: first.Path, Message: "change a thing"})
		case Tag:
			acts = append(acts, Act{Kind: Tag, By: first.By, Branch: fmt.Sprintf("v1.%d", n+1)})
		default:
			acts = append(acts, pick(d, Act{Kind: Comment, By: Writer, Text: "/test"}, Act{
				Kind: Sync, By: first.By, Path: first.Path, Message: "change a thing",
			}))
		}
	}
	return acts
}
