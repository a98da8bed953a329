// SPDX-License-Identifier: Apache-2.0

// Package tombstone stores one short line for each settled event that was deleted while its
// delivery may still be sent again. A TombstonePage has many lines.
package tombstone

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

const (
	// digestLength is how many hexadecimal digits of a payload's digest a tombstone has: 64 bits.
	// The name of the event has 128 bits of the delivery already.
	digestLength = 16
	// pagePrefix starts the names of pages; two hexadecimal digits follow.
	pagePrefix = "tombstones-"
	// The two words that say whether a redelivery is processed.
	wordDone, wordAgain = "done", "again"
)

// Entry is the tombstone of one event.
type Entry struct {
	// Event is the GitEvent's name.
	Event string
	// Digest is the start of its payload's digest, without "sha256:". If the event's name is made
	// of the delivery's key, it is that of GitEventSpec.Happening, because GitLab's redeliveries
	// have another body.
	Digest string
	// Again says that a redelivery is processed as another event (GitEvent.MayRunAgain).
	Again bool
	// Until is when the delivery cannot be sent again any more.
	Until time.Time
}

// hashLength is how many hexadecimal digits of the delivery's hash are in a name that receivers
// give (v1alpha1.EventName).
const hashLength = 32

// PageOf returns the name of the page with an event's entry, by the first digits of the hash in the
// event's name. It is empty for a name that no receiver gives, because no delivery can be of it.
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

// Of returns the entry of a settled event whose delivery may be sent again until a time.
func Of(event *v1alpha1.GitEvent, until time.Time) Entry {
	digest, spec := event.Spec.Payload.Digest, &event.Spec
	if strings.HasPrefix(event.Name, v1alpha1.EventName(spec.Kind(), spec.Provider, spec.Host, spec.DeliveryKey)) {
		digest = event.Spec.Happening()
	}
	return Entry{Event: event.Name, Digest: shorten(digest), Again: event.MayRunAgain(), Until: until}
}

// Records reports whether the entry is of the delivery with this digest. The digest is that of the
// payload, or that of spec.Happening().
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

// Move returns a JSON patch that changes when an entry expires. The patch fails if the entry is not
// as it was read.
func Move(page *v1alpha1.TombstonePage, entry Entry, until time.Time) ([]byte, error) {
	i := slices.Index(page.Entries, entry.line())
	moved := entry
	moved.Until = until
	path := fmt.Sprintf("/entries/%d", i)
	return json.Marshal([]map[string]string{
		{"op": "test", "path": path, "value": entry.line()}, {"op": "replace", "path": path, "value": moved.line()},
	})
}

// parse reads a line. It returns false for a line that is not an entry, e.g. one written by hand.
func parse(line string) (Entry, bool) {
	parts := strings.Fields(line)
	if len(parts) != 4 || parts[2] != wordDone && parts[2] != wordAgain {
		return Entry{}, false
	}
	until, err := strconv.ParseInt(parts[3], 10, 64)
	return Entry{Event: parts[0], Digest: parts[1], Again: parts[2] == wordAgain, Until: time.Unix(until, 0)}, err == nil
}

// Find returns the entry of an event if it has not expired.
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

// Add adds entries to a page and removes expired ones. If there are more than
// v1alpha1.MaxTombstones, it drops those that expire first, and returns how many.
func Add(page *v1alpha1.TombstonePage, fresh []Entry, now time.Time) (lost int) {
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
		return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.Event, b.Event))
	})
	lost = max(0, len(kept)-v1alpha1.MaxTombstones)
	page.Entries = make([]string, 0, len(kept)-lost)
	for _, e := range kept[lost:] {
		page.Entries = append(page.Entries, e.line())
	}
	return lost
}

// Count returns how many entries have not expired.
func Count(page *v1alpha1.TombstonePage, now time.Time) int {
	n := 0
	for _, line := range page.Entries {
		if e, ok := parse(line); ok && e.Until.After(now) {
			n++
		}
	}
	return n
}
