// SPDX-License-Identifier: Apache-2.0

package scenario

// newer are acts that start pipelines again while earlier runs may go on. A command or a close
// cancels some of them.
func (d drawer) newer() []Act {
	acts := d.begin()
	first := acts[0]
	for range 2 + d.IntN(2) {
		switch first.Kind {
		case Push:
			acts = append(acts, d.pushAgain(first))
		case Tag:
			acts = append(acts, pick(d, Act{
				Kind: Tag, By: first.By, Branch: first.Branch, Path: d.path(), Message: "change a thing",
			}, Act{Kind: Tag, By: first.By, Branch: "v2.0"}))
		default:
			acts = append(acts, d.overtake(first)...)
		}
	}
	switch n := d.IntN(6); {
	case first.Kind != Open:
	case n == 0:
		acts = append(acts, Act{Kind: Closed, By: pick(d, first.By, Owner)})
	case n == 1:
		acts = append(acts, Act{Kind: Comment, By: pick(d, first.By, Owner, Writer), Text: cancel})
	}
	return acts
}

// pushAgain is a push to the same branch, nearly always.
func (d drawer) pushAgain(first Act) Act {
	return Act{Kind: Push, By: pick(d, Owner, Writer), Branch: pick(d, first.Branch, first.Branch, first.Branch,
		first.Branch, Release), Path: d.path(), Message: "change a thing"}
}

// overtake is what starts pipelines of a pull request once more, or those of its base branch.
func (d drawer) overtake(open Act) []Act {
	switch n := d.IntN(12); {
	case n < 5:
		sync := Act{Kind: Sync, By: open.By, Path: d.path(), Message: "change a thing"}
		if open.Fork && !MayWrite(open.By) && !d.in(3) {
			return []Act{sync, {Kind: Comment, By: Writer, Text: approve}}
		}
		return []Act{sync}
	case n < 7:
		return []Act{{Kind: Comment, By: pick(d, Owner, Writer), Text: "/test"}}
	case n < 8:
		return []Act{{Kind: Comment, By: pick(d, Owner, Writer, open.By)}}
	case n < 9:
		return []Act{{Kind: Labeled, By: pick(d, Owner, Writer), Text: Label}}
	case n < 11 && !open.Fork:
		return []Act{{Kind: Echo, By: open.By}}
	}
	branch := open.Branch
	if open.Fork { // of the repository itself, and called like the pull request's
		branch = pick(d, branch, Feature)
	}
	return []Act{{Kind: Push, By: Writer, Branch: branch, Path: d.path(), Message: "change a thing"}}
}

// overtakes has most runs of a pipeline go on, and most newer ones end them.
func (d drawer) overtakes(p *Pipeline) {
	p.Held = !d.in(4)
	p.Cancels = pick(d, "true", "true", "true", "", "", "false", "yes")
	if p.On["on-event"] != "" && d.in(5) {
		p.On["on-label"] = "[" + Label + "]"
	}
}
