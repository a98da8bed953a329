// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Of returns the commit that was approved: the head of the plan that has the approval, or the one
// whose approval is remembered for it.
func (a *Approval) Of(head string) string {
	if a.SHA != "" {
		return a.SHA
	}
	return head
}

// Says tells people, in a sentence, whose approval lets a commit run, and of which commit it is.
func (a *Approval) Says(head string) string {
	says := a.By + " has approved commit " + a.Of(head)
	if a.Of(head) != head {
		says += ", which is remembered for commit " + head
	}
	return says + "."
}
