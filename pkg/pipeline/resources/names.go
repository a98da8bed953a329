// SPDX-License-Identifier: Apache-2.0

// Package resources makes the objects the gitevent reconciler creates and patches. Every function
// is pure and deterministic: the same event makes the same bytes, so a repeated create meets its
// own object.
package resources

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// maxRunName is what Tekton accepts and what fits a label.
	maxRunName = validation.LabelValueMaxLength
	// maxBase is how much of an author's name a PipelineRun's name keeps, next to a dash and the
	// hash.
	maxBase = maxRunName - 1 - hashLength
	// hashLength is how many base32 characters (5 bits each) tell names apart.
	hashLength = 13
	// gitAuthPrefix starts the names of git-auth secrets; PaC's users filter by it.
	gitAuthPrefix = "pac-gitauth-"
	// noName replaces a name without a usable character.
	noName = "run"
)

// RunName returns the name of the PipelineRun that an event makes of a definition: readable, at
// most 63 bytes, a DNS-1123 label, and the same on every attempt.
func RunName(event, file string, document int, name string) string {
	return base(name) + "-" + digest(event, file, strconv.Itoa(document), name)
}

// AttemptName returns the name of the PipelineRun of a later attempt, from 2 on. first is the name
// that RunName returned; its digest stays.
func AttemptName(first string, attempt int) string {
	suffix := "-" + strconv.Itoa(attempt)
	if more := len(first) + len(suffix) - maxRunName; more > 0 {
		at := max(more, len(first)-hashLength-1)
		first = strings.TrimRight(first[:at-more], "-") + first[at:]
	}
	return first + suffix
}

// SecretName returns the name of the git-auth secret of a PipelineRun.
func SecretName(runName string) string {
	return gitAuthPrefix + digest(runName)
}

// PlanSecretName returns the name of the Secret that holds the values of the markers in an event's
// plan. It is in the namespace of the GitEvent.
func PlanSecretName(event string) string { return event + "-plan" }

// base returns the part of a name that a DNS-1123 label may start with.
func base(name string) string {
	letters := []byte(strings.ToLower(name))
	for i, c := range letters {
		isLetter, isDigit := 'a' <= c && c <= 'z', '0' <= c && c <= '9'
		if !isLetter && !isDigit {
			letters[i] = '-'
		}
	}
	kept := strings.TrimLeft(string(letters), "-")
	kept = strings.TrimRight(kept[:min(len(kept), maxBase)], "-")
	if kept == "" {
		return noName
	}
	return kept
}

// digest hashes its parts, each preceded by its length so that no two lists of parts are hashed
// alike.
func digest(parts ...string) string {
	hash := sha256.New()
	for _, part := range parts {
		hash.Write(fmt.Appendf(nil, "%d:%s", len(part), part))
	}
	encoded := base32.StdEncoding.EncodeToString(hash.Sum(nil))
	return strings.ToLower(encoded[:hashLength])
}

// notInLabels is what label values drop.
var notInLabels = regexp.MustCompile(`[^A-Za-z0-9.\-_:/ \[\]]`)

// labelValue makes a value that labels accept, the way PaC does, so that its users' selectors find
// our runs: the end of a long value is kept.
func labelValue(value string) string {
	if len(validation.IsValidLabelValue(value)) == 0 {
		return value
	}
	value = notInLabels.ReplaceAllString(value, "")
	value = strings.NewReplacer(":", "-", "/", "-", " ", "_", "[", "__", "]", "__").Replace(value)
	value = strings.Trim(value, ".-_")
	value = value[max(0, len(value)-validation.LabelValueMaxLength):]
	return strings.TrimLeft(value, ".-_")
}
