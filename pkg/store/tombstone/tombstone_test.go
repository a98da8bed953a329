// SPDX-License-Identifier: Apache-2.0

package tombstone

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/store/blob"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func event(key string, disposition v1alpha1.Disposition) *v1alpha1.GitEvent {
	return &v1alpha1.GitEvent{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.EventName("pull_request", "gitlab", "git.example", key)},
		Spec:       v1alpha1.GitEventSpec{Payload: v1alpha1.BlobReference{Digest: blob.Digest([]byte(key))}},
		Status:     v1alpha1.GitEventStatus{Phase: v1alpha1.PhaseSettled, Disposition: disposition},
	}
}

func TestFindReturnsEntriesUntilTheyExpire(t *testing.T) {
	t.Parallel()
	page := &v1alpha1.TombstonePage{Entries: []string{"what somebody wrote", "push-1 x done never", ""}}
	done, refused := event("a", v1alpha1.DispositionRuns), event("b", v1alpha1.DispositionRefused)
	if lost := Add(page, []Entry{Of(done, now.Add(time.Hour)), Of(refused, now.Add(2*time.Hour))}, now); lost != 0 ||
		len(page.Entries) != 2 {
		t.Fatalf("%d lost, entries %q", lost, page.Entries)
	}
	for _, c := range []struct {
		sentence     string
		event        *v1alpha1.GitEvent
		at           time.Duration
		found, again bool
	}{
		{"an event with runs is done", done, 0, true, false},
		{"a refused one may run again", refused, 0, true, true},
		{"one that was never buried is not there", event("c", v1alpha1.DispositionRuns), 0, false, false},
		{"after its time it does not count", done, time.Hour, false, false},
		{"the other's is not over then", refused, time.Hour, true, true},
	} {
		entry, found := Find(page, c.event.Name, now.Add(c.at))
		if found != c.found || entry.Again != c.again ||
			found && (!entry.Records(c.event.Spec.Payload.Digest) || entry.Records(blob.Digest([]byte("other")))) {
			t.Errorf("%s: found %v, %+v", c.sentence, found, entry)
		}
	}
	if got := Count(page, now.Add(time.Hour)); got != 1 {
		t.Errorf("%d living, want 1", got)
	}
	if Add(page, nil, now.Add(time.Hour)); len(page.Entries) != 1 {
		t.Errorf("what is over stays: %q", page.Entries)
	}
}

func TestAddReplacesTheEntryOfAnEvent(t *testing.T) {
	t.Parallel()
	page := &v1alpha1.TombstonePage{}
	for range 3 { // its stub could not be deleted
		Add(page, []Entry{Of(event("a", v1alpha1.DispositionRuns), now.Add(time.Hour))}, now)
	}
	if len(page.Entries) != 1 {
		t.Errorf("entries %q", page.Entries)
	}
}

func TestFullPageDropsWhatExpiresFirst(t *testing.T) {
	t.Parallel()
	page := &v1alpha1.TombstonePage{}
	var all []Entry
	for i := range v1alpha1.MaxTombstones + 3 {
		all = append(all, Of(event(fmt.Sprint(i), v1alpha1.DispositionRuns), now.Add(time.Hour+time.Duration(i)*time.Second)))
	}
	if lost := Add(page, all, now); lost != 3 || len(page.Entries) != v1alpha1.MaxTombstones {
		t.Fatalf("%d lost, %d kept", lost, len(page.Entries))
	}
	for i, e := range all {
		if _, found := Find(page, e.Event, now); found != (i >= 3) {
			t.Fatalf("entry %d is found: %v", i, found)
		}
	}
}

// The limit that the documentation names, in bytes of JSON.
func TestLineHasAtMost200Bytes(t *testing.T) {
	t.Parallel()
	longest := event("x", v1alpha1.DispositionRefused)
	longest.Name += "-r20"
	line := Of(longest, now.AddDate(0, 0, 90)).line()
	t.Logf("a tombstone has %d bytes: %s", len(line), line)
	if len(line)+len(`"",`) > 200 {
		t.Errorf("%d bytes: %s", len(line), line)
	}
	if e, ok := parse(line); !ok || e.line() != line {
		t.Errorf("%q is read as %+v", line, e)
	}
}

func TestPagesAreNamedByTheHashOfTheDelivery(t *testing.T) {
	t.Parallel()
	hash := strings.Repeat("a", 32)
	for name, want := range map[string]string{
		"push-" + hash: "tombstones-aa", "pull-request-0f" + hash[2:] + "-r12": "tombstones-0f",
		"comment-" + hash: "tombstones-aa",
		"made-by-hand":    "", "push-" + hash + "-r123": "", "push-" + hash + "0": "", hash: "", "": "",
	} {
		if got := PageOf(name); got != want {
			t.Errorf("%s: page %q, want %q", name, got, want)
		}
	}
}
