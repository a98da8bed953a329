// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RunLog has the last lines of the failed steps of a run, with secret values masked, or says why it
// has none.
type RunLog struct {
	// When reading the log ends. It is unset once the rest is final.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
	// The failed steps, those of the first failed task first.
	// +optional
	Steps []StepLog `json:"steps,omitempty"`
	// Why the log of no step is shown.
	// +optional
	Missing *MissingLog `json:"missing,omitempty"`
	// True if the check shows nothing of the log. Then the log was only searched for source lines.
	// +optional
	Hidden bool `json:"hidden,omitempty"`
}

// StepLog has the last lines of one failed step.
type StepLog struct {
	// The name of the pipeline task.
	Task string `json:"task"`
	// The name of the step.
	Step string `json:"step"`
	// The last lines of its log. They are plain text.
	// +optional
	Text string `json:"text,omitempty"`
	// Why there is no text.
	// +optional
	Missing *MissingLog `json:"missing,omitempty"`
	// The source lines that its log names, in the order of the log. The Git service shows each as
	// an annotation.
	// +optional
	Sources []SourceLine `json:"sources,omitempty"`
}

// SourceLine is what a log says about a line of the source.
type SourceLine struct {
	// The path of the file in the repository.
	Path string `json:"path"`
	// The number of the line; the first is 1.
	Line int32 `json:"line"`
	// What the log says about it. It is plain text.
	Message string `json:"message"`
}

// MissingLog says why a log is not shown.
type MissingLog struct {
	// One word for machines.
	Reason MissingReason `json:"reason"`
	// The object that the reason is about.
	// +optional
	Object string `json:"object,omitempty"`
}

// MissingReason is why a log is not shown.
type MissingReason string

const (
	// LogForbidden means that the controller may not read logs in the namespace.
	LogForbidden MissingReason = "Forbidden"
	// LogGone means that the pod was deleted, or its node does not have the log any more.
	LogGone MissingReason = "Gone"
	// LogEmpty means that the step has written nothing.
	LogEmpty MissingReason = "Empty"
	// LogSecret means that a Secret that the run could see cannot be read, so that its values
	// cannot be masked.
	LogSecret MissingReason = "SecretUnreadable"
	// LogSecrets means that the Secrets that the run could see are too large to be masked.
	LogSecrets MissingReason = "SecretsTooLarge"
	// LogUnavailable means that the cluster did not return the log in time.
	LogUnavailable MissingReason = "Unavailable"
)

// Pending reports whether the log is still to be read.
func (l *RunLog) Pending() bool { return l != nil && l.Until != nil }

// Sources returns the source lines of all steps, each of them once.
func (l *RunLog) Sources() (all []SourceLine) {
	if l == nil {
		return nil
	}
	known := map[SourceLine]bool{}
	for i := range l.Steps {
		for _, s := range l.Steps[i].Sources {
			if !known[s] {
				all = append(all, s)
			}
			known[s] = true
		}
	}
	return all
}

// MaxSources is how many source lines are stored of one step.
const MaxSources = 50

// MaxSourcePath and MaxSourceMessage bound the path and the message of a SourceLine, in bytes of
// JSON. sourceOverhead is what its keys, its number and its quotes take.
const (
	MaxSourcePath    = 256
	MaxSourceMessage = 512
	sourceOverhead   = 48
)

const (
	// maxLogSteps is how many failed steps of a run are shown at most.
	maxLogSteps = 5
	// maxLogName bounds a name in a log, in bytes of JSON. stepOverhead is what the names and keys
	// of one step take.
	maxLogName   = 64
	stepOverhead = 2*maxLogName + 32
)

// logLimit returns how many bytes of JSON the log of one run may have, apart from its source lines.
func logLimit(share int) int { return share / 16 }

// LogLimit returns how many failed steps of one run are stored at most, and how many bytes of JSON
// the text of each may have if there are n.
func LogLimit(s *GitEventStatus) (steps int, bytes func(n int) int) {
	limit := logLimit(shareOf(s))
	steps = max(1, min(maxLogSteps, limit/(4*stepOverhead)))
	return steps, func(n int) int { return max(maxLogName, limit/n-stepOverhead) }
}

// fitLog cuts the log of a run. It keeps the first steps.
func fitLog(log *RunLog, limit int) {
	if log == nil {
		return
	}
	left := limit
	for i := range log.Steps {
		step := &log.Steps[i]
		if i == maxLogSteps || i > 0 && left < 2*stepOverhead {
			log.Steps = log.Steps[:i]
			break
		}
		step.Task, step.Step = cut(step.Task, maxLogName), cut(step.Step, maxLogName)
		step.Text = cut(step.Text, max(maxLogName, left-stepOverhead))
		fitMissing(step.Missing)
		left -= stepOverhead + Length(step.Text)
	}
	fitMissing(log.Missing)
	fitSources(log, 3*limit) // source lines may take three times as much
}

// fitSources drops the source lines that do not fit. It keeps the first, and cuts none: a path that
// is cut names another file. A limit only grows, so what was kept stays.
func fitSources(log *RunLog, left int) {
	for i := range log.Steps {
		step := &log.Steps[i]
		kept := 0
		for kept < min(len(step.Sources), MaxSources) && left > 0 {
			s := &step.Sources[kept]
			s.Message = cut(s.Message, MaxSourceMessage)
			left -= sourceOverhead + Length(s.Path) + Length(s.Message)
			if left >= 0 {
				kept++
			}
		}
		if kept < len(step.Sources) {
			step.Sources = step.Sources[:kept:kept]
		}
	}
}

func fitMissing(missing *MissingLog) {
	if missing != nil {
		missing.Object = cut(missing.Object, maxLogName)
	}
}
