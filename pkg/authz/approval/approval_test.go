// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"strings"
	"testing"
	"time"
)

var (
	first  = strings.Repeat("a", 40)
	second = strings.Repeat("b", 40)
)

// at is the same second of the Git service's clock and ours.
func at(second int) time.Time { return time.Unix(int64(1_800_000_000+second), 0) }

// seen is a head whose delivery arrived at once.
func seen(sha string, happened int) Head {
	return Head{SHA: sha, At: at(happened), Received: at(happened)}
}

// pushed is the head of a push whose delivery arrived later.
func pushed(sha, before string, happened, received int) Head {
	return Head{SHA: sha, Before: before, At: at(happened), Received: at(received)}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	said := Comment{At: at(5), Received: at(6)}
	naming := func(sha string) Comment { return Comment{At: at(5), Received: at(6), SHA: sha} }
	for name, c := range map[string]struct {
		comment Comment
		head    string
		known   []Head
		want    string // part of the sentence, "" when it is approved
	}{
		"the head since before the comment": {said, first, []Head{seen(first, 1)}, ""},
		"the last of several": {
			said, second, []Head{seen(first, 1), pushed(second, first, 3, 3)}, "",
		},
		"it was labelled since": {said, first, []Head{seen(first, 1), seen(first, 7)}, ""},
		"labelled after it, which was delivered before it": {
			said, first, []Head{seen(first, 1), pushed(first, "", 7, 5)}, "was not " + first,
		},
		"the service's own list says so": {said, first, []Head{{SHA: first, At: at(1)}}, ""},
		"pushed after the comment": {
			said, second, []Head{seen(first, 1), pushed(second, first, 7, 7)}, "was not " + second,
		},
		"pushed after it and delivered before it": {
			said, second, []Head{seen(first, 1), pushed(second, first, 7, 5)}, "was not " + second,
		},
		"pushed after it and not delivered": {said, second, []Head{seen(first, 1)}, "was not " + second},
		"pushed before it and delivered after it": {
			said, second, []Head{seen(first, 1), pushed(second, first, 4, 7)}, "was not " + second,
		},
		"pushed in its second": {
			said, second, []Head{seen(first, 1), pushed(second, first, 5, 5)}, "was not " + second,
		},
		"opened in its second": {
			said, first, []Head{seen(first, 5)}, ", or name the commit: /ok-to-test " + first + ".",
		},
		"opened in its second, and it names the head": {
			naming(first), first, []Head{seen(first, 5)}, "write the command again.",
		},
		"another head in its second": {
			said, first, []Head{seen(first, 1), pushed(second, first, 5, 9)}, "was not " + first,
		},
		"two heads in one second before it": {
			said, first, []Head{seen(first, 3), pushed(second, first, 3, 3)}, "was not " + first,
		},
		"pushed back after it": {
			said, first, []Head{seen(first, 1), pushed(second, first, 3, 3), pushed(first, second, 7, 7)}, "was not " + first,
		},
		"pushed back after it, and the push between not known": {
			said, first, []Head{seen(first, 1), pushed(first, second, 7, 7)}, "was not " + first,
		},
		"pushed back after it, and delivered before it": {
			said, first, []Head{seen(first, 1), pushed(first, second, 7, 6)}, "was not " + first,
		},
		"pushed back before it": {
			said, first, []Head{seen(first, 1), pushed(second, first, 3, 3), pushed(first, second, 4, 4)}, "",
		},
		"another head before it, delivered after it": {
			said, first, []Head{seen(first, 1), pushed(second, first, 3, 9)}, "was not " + first,
		},
		"delivered after it only": {
			said, first, []Head{pushed(first, "", 1, 7)}, "cannot tell whether",
		},
		"nothing is known": {said, first, nil, "/ok-to-test " + first},
		"the time of writing is unknown": {
			Comment{Received: at(6)}, first, []Head{seen(first, 1)}, "does not say when",
		},
		"it names the head": {naming(first), first, []Head{seen(first, 1)}, ""},
		"it names ten digits of it, large": {
			naming(strings.ToUpper(first[:10])), first, []Head{seen(first, 1)}, "",
		},
		"it names nine": {
			naming(first[:9]), first, []Head{seen(first, 1)}, "at least 10 digits",
		},
		"it names another commit": {
			naming(second), first, []Head{seen(first, 1)}, "the head of the pull request is " + first,
		},
		"it names more than the head": {
			naming(first + "a"), first, []Head{seen(first, 1)}, "the head of the pull request is " + first,
		},
		"it names the whole head and nothing is known": {naming(first), first, nil, ""},
		"it names ten digits and nothing is known":     {naming(first[:10]), first, nil, "cannot tell whether"},
		"it names the head, which was pushed after it": {
			naming(second), second, []Head{seen(first, 1), pushed(second, first, 7, 6)}, "was not " + second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			approved, why := Decide(c.comment, c.head, c.known)
			if approved != (c.want == "") || !strings.Contains(why, c.want) || !approved && !strings.Contains(why, c.head) {
				t.Errorf("%t, %q; want %q", approved, why, c.want)
			}
		})
	}
}
