// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"
	"unicode/utf8"
)

// MaxRuns is how many PipelineRuns one event may have. Apart from texts, a run takes up to 1.5 KiB
// of the status: its names, its check, and its waits.
const MaxRuns = 250

// The limits of texts, in bytes of JSON, which is what etcd stores: a '<' takes six. etcd takes
// objects of 1.5 MiB. The status takes at most about 1 MiB; the rest is for the spec and for
// metadata.managedFields.
const (
	reasons    = 60 << 10  // all decisions together
	runs       = 288 << 10 // all runs together
	maxRun     = 128 << 10 // one run
	maxMessage = 4 << 10   // a message of which there are few
	maxWord    = 128
	maxReply   = 1 << 10
	maxStub    = 256 // any text of a settled event
)

// mark ends a text that was cut.
const mark = " … (cut)"

// Fit cuts texts that are too long, so that the status can be written. It never cuts a text again,
// because the limit of a run's texts only grows; so a report that was made from a text stays the
// same.
func Fit(s *GitEventStatus) {
	for i := range s.Conditions {
		s.Conditions[i].Message = cut(s.Conditions[i].Message, maxMessage)
	}
	share := shareOf(s)
	for i := range s.Waits {
		limit := maxMessage
		if strings.Contains(s.Waits[i].Step, "/") {
			limit = min(limit, share/8)
		}
		s.Waits[i].Reason, s.Waits[i].Message = cut(s.Waits[i].Reason, maxWord), cut(s.Waits[i].Message, limit)
	}
	for i := range s.Runs {
		fitRun(&s.Runs[i], share)
	}
	if s.Reply != nil {
		s.Reply.Command = cut(s.Reply.Command, maxReply)
	}
	if s.Plan != nil {
		s.Plan.Reason, s.Plan.Message = cut(s.Plan.Reason, maxWord), cut(s.Plan.Message, maxMessage)
		fitDecisions(s.Plan.Decisions)
	}
}

// Shrink cuts the texts of a settled event to a short form for people. The checks have the full
// reports.
func Shrink(s *GitEventStatus) {
	texts := []*string{}
	for i := range s.Conditions {
		texts = append(texts, &s.Conditions[i].Message)
	}
	if s.Plan != nil {
		texts = append(texts, &s.Plan.Message)
		for i := range s.Plan.Decisions {
			texts = append(texts, &s.Plan.Decisions[i].Reason)
		}
	}
	for i := range s.Runs {
		texts = append(texts, &s.Runs[i].Note)
		if refused := s.Runs[i].Refused; refused != nil {
			texts = append(texts, &refused.Message)
		}
		if result := s.Runs[i].Result; result != nil {
			texts = append(texts, &result.Message)
		}
	}
	for _, text := range texts {
		*text = cut(*text, maxStub)
	}
}

// ReportLimit returns how long the report of a run may be, in bytes: half of its limit in JSON, the
// other half being for escapes.
func ReportLimit(s *GitEventStatus) int { return reportLimit(shareOf(s)) / 2 }

func reportLimit(share int) int { return share * 5 / 8 }

// shareOf returns the limit for one run. Each open decision counts as a run, because it may become
// one.
func shareOf(s *GitEventStatus) int {
	n := len(s.Runs)
	if s.Plan != nil {
		for _, d := range s.Plan.Decisions {
			if d.Open {
				n++
			}
		}
	}
	return min(maxRun, runs/max(1, min(n, MaxRuns)))
}

func fitRun(run *Run, share int) {
	run.Note = cut(run.Note, share/8)
	for i := range run.Attempts {
		run.Attempts[i].Cause = cut(run.Attempts[i].Cause, maxWord)
	}
	if run.Refused != nil {
		run.Refused.Reason, run.Refused.Message = cut(run.Refused.Reason, maxWord), cut(run.Refused.Message, share/2)
	}
	if result := run.Result; result != nil {
		result.Reason, result.Message = cut(result.Reason, maxWord), cut(result.Message, share/8)
		result.Text, result.Brief = cut(result.Text, reportLimit(share)), cut(result.Brief, share/8)
		result.Cause = cut(result.Cause, maxStub)
		fitLog(result.Log, logLimit(share))
	}
}

// fitDecisions cuts the longest reasons, all to the same length: those that are shown, and those
// that are stored for later.
func fitDecisions(decisions []Decision) {
	texts, lengths := make([]*string, 0, 2*len(decisions)), make([]int, 0, 2*len(decisions))
	for i := range decisions {
		d := &decisions[i]
		texts, lengths = append(texts, &d.Reason, &d.Selected), append(lengths, Length(d.Reason), Length(d.Selected))
	}
	limit := level(lengths, reasons)
	for _, text := range texts {
		*text = cut(*text, limit)
	}
}

// level returns the largest length to which all texts can be cut so that they fit.
func level(lengths []int, budget int) int {
	low, high := 0, budget // low fits; so does high if it is more than any of them
	for low < high {
		middle := (low + high + 1) / 2
		total := 0
		for _, n := range lengths {
			total += min(n, middle)
		}
		if total <= budget {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}

// cut shortens a text to at most limit bytes of JSON, including the mark. It never splits a
// character.
func cut(text string, limit int) string {
	if len(text) <= limit/6 || Length(text) <= limit {
		return text
	}
	text = strings.TrimSuffix(text, mark)
	left := limit - len(mark)
	for i, r := range text {
		if left -= length(r); left < 0 {
			return text[:i] + mark
		}
	}
	return text
}

// Length returns how many bytes a text takes in JSON.
func Length(text string) int {
	n := 0
	for _, r := range text {
		n += length(r)
	}
	return n
}

func length(r rune) int {
	switch {
	case r == '"', r == '\\', r == '\n', r == '\r', r == '\t':
		return 2
	case r < ' ', r == '<', r == '>', r == '&', r == '\u2028', r == '\u2029', r == utf8.RuneError:
		return 6
	}
	return utf8.RuneLen(r)
}
