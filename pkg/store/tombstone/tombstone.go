// SPDX-License-Identifier: Apache-2.0

// Package tombstone remembers settled events that were deleted while their deliveries may still be
// sent again: one short line for each event, many lines in one TombstonePage.
package tombstone

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

const (
	// digestLength is how many hexadecimal digits of a payload's digest a tombstone keeps: 64 bits.
	// The name of the event has 128 bits of the delivery already.
	digestLength = 16
	// pagePrefix starts the names of pages; two hexadecimal digits follow.
	pagePrefix = "tombstones-"
	// The two words that say whether a redelivery is processed.
	wordDone, wordAgain = "done", "again"
)

// Entry is what is left of one event.
type Entry struct {
	// Event is the GitEvent's name.
	Event string
	// Digest is the start of its payload's, without "sha256:"; of what happened
	// (GitEventSpec.Happening) if its name is made of the delivery's key, because GitLab sends
	// another body again.
	Digest string
	// Again tells that a redelivery is processed as another event (GitEvent.MayRunAgain).
	Again bool
	// Until is when the delivery cannot be sent again any more.
	Until time.Time
}

// hashLength is how many hexadecimal digits of the delivery's hash are in a name that receivers
// give (v1alpha1.EventName).
const hashLength = 32

// PageOf names the page that holds an event's entry, by the first digits of the hash in its name.
// It is empty for a name that no receiver gives: no delivery will ever ask for it.
func PageOf(event string) string {
	parts := strings.Split(event, "-")
	if last := parts[len(parts)-1]; len(last) > 1 && len(last) <= 3 && last[0] == 'r' &&
		strings.Trim(last[1:], "0123456789") == "" {
		parts = parts[:len(parts)-1] // a repetition
	}
	hash := parts[len(parts)-1]
	if len(parts) < 2 || len(event) > maxName || len(hash) != hashLength || strings.Trim(hash, "0123456789abcdef") != "" {
		return ""
	}
	return pagePrefix + hash[:2]
}

// maxName is longer than any name that receivers give.
const maxName = 100

// Of returns what is left of a settled event whose delivery may be sent again until then.
func Of(event *v1alpha1.GitEvent, until time.Time) Entry {
	digest, spec := event.Spec.Payload.Digest, &event.Spec
	if strings.HasPrefix(event.Name, v1alpha1.EventName(spec.Kind(), spec.Provider, spec.Host, spec.DeliveryKey)) {
		digest = event.Spec.Happening()
	}
	return Entry{Event: event.Name, Digest: shorten(digest), Again: event.MayRunAgain(), Until: until}
}

// Records reports whether the entry is of a delivery with this digest, of its payload or of what
// happened.
func (e Entry) Records(digest string) bool { return e.Digest != "" && e.Digest == shorten(digest) }

func shorten(digest string) string {
	hex := strings.TrimPrefix(digest, "sha256:")
	return hex[:min(len(hex), digestLength)]
}

func (e Entry) line() string {
	word := wordDone
	if e.Again {
		word = wordAgain
	}
	return fmt.Sprintf("%s %s %s %d", e.Event, e.Digest, word, e.Until.Unix())
}

// Moved returns the JSON patch of a page that moves the end of an entry. It does nothing to a page
// in which the entry is not as it was read.
func Moved(page *v1alpha1.TombstonePage, entry Entry, until time.Time) ([]byte, error) {
	i := slices.Index(page.Entries, entry.line())
	moved := entry
	moved.Until = until
	path := fmt.Sprintf("/entries/%d", i)
	return json.Marshal([]map[string]string{
		{"op": "test", "path": path, "value": entry.line()}, {"op": "replace", "path": path, "value": moved.line()},
	})
}

// parse reads a line; a line that somebody wrote by hand may be none.
func parse(line string) (Entry, bool) {
	parts := strings.Fields(line)
	if len(parts) != 4 || parts[2] != wordDone && parts[2] != wordAgain {
		return Entry{}, false
	}
	until, err := strconv.ParseInt(parts[3], 10, 64)
	return Entry{Event: parts[0], Digest: parts[1], Again: parts[2] == wordAgain, Until: time.Unix(until, 0)}, err == nil
}

// Find returns the entry of an event that counts now.
func Find(page *v1alpha1.TombstonePage, event string, now time.Time) (Entry, bool) {
	for _, line := range page.Entries {
		if !strings.HasPrefix(line, event+" ") {
			continue
		}
		if e, ok := parse(line); ok && e.Until.After(now) {
			return e, true
		}
	}
	return Entry{}, false
}

// Bury adds entries to a page, without those that do not count any more. Of more than
// v1alpha1.MaxTombstones those that end first are left out; lost is their number.
func Bury(page *v1alpha1.TombstonePage, fresh []Entry, now time.Time) (lost int) {
	all := map[string]Entry{}
	for _, line := range page.Entries {
		if e, ok := parse(line); ok {
			all[e.Event] = e
		}
	}
	for _, e := range fresh {
		all[e.Event] = e
	}
	kept := make([]Entry, 0, len(all))
	for _, e := range all {
		if e.Until.After(now) {
			kept = append(kept, e)
		}
	}
	slices.SortFunc(kept, func(a, b Entry) int {
		if c := a.Until.Compare(b.Until); c != 0 {
			return c
		}
		return strings.Compare(a.Event, b.Event)
	})
	lost = max(0, len(kept)-v1alpha1.MaxTombstones)
	page.Entries = make([]string, 0, len(kept)-lost)
	for _, e := range kept[lost:] {
		page.Entries = append(page.Entries, e.line())
	}
	return lost
}

// Living counts the entries that count now.
func Living(page *v1alpha1.TombstonePage, now time.Time) int {
	n := 0
	for _, line := range page.Entries {
		if e, ok := parse(line); ok && e.Until.After(now) {
			n++
		}
	}
	return n
}
