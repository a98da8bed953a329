// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const system = "plumbline"

func TestOthers(t *testing.T) {
	t.Parallel()
	open := map[string]string{"secret-github-app-token-scoped": "false"}
	with := func(more map[string]string) map[string]string {
		for key, value := range open {
			if _, set := more[key]; !set {
				more[key] = value
			}
		}
		return more
	}
	const extra, lib, tasks = "secret-github-app-scope-extra-repos", "https://github.com/acme/lib", "https://github.com/acme/tasks.git"
	for name, test := range map[string]struct {
		setup            func(c *cluster)
		lists            []string
		data             map[string]string
		change           func(*Request)
		want, skip, says string
	}{
		"nothing is listed": {data: open},
		"a Repository of the namespace": {
			setup: func(c *cluster) { c.owned("team", "lib", lib, bound(2)) },
			lists: []string{"acme/lib"}, data: open, want: "lib=2",
		},
		"one that no event has bound yet, with another spelling of its name": {
			setup: func(c *cluster) { c.owned("team", "tasks", tasks) }, lists: []string{"ACME/t*"}, data: open, want: "Tasks=3",
		},
		"a glob of several, without the event's own": {
			setup: func(c *cluster) {
				c.owned("team", "lib", lib)
				c.owned("team", "tasks", tasks)
			},
			lists: []string{"acme/*"}, data: open, want: "lib=2 Tasks=3",
		},
		"by default no list is allowed": {
			setup: func(c *cluster) { c.owned("team", "lib", lib) }, lists: []string{"acme/lib"}, says: ReasonRefused,
		},
		"an administrator's list allows others": {
			setup: func(c *cluster) { c.owned("team", "lib", lib) }, lists: []string{"acme/lib"},
			data: map[string]string{extra: "acme/tools-*"}, want: "lib=2 tools-a=5 tools-b=6",
		},
		"only the administrator's": {data: map[string]string{extra: "acme/tasks, other/thing"}, want: "Tasks=3"},
		"what the administrator lists and the installation does not cover": {
			data: map[string]string{extra: "acme/gone"}, skip: "acme/gone, which the App's installation does not cover",
		},
		"a token that writes does not reach the administrator's list": {
			setup: func(c *cluster) { c.owned("team", "lib", lib) }, lists: []string{"acme/lib"},
			data: with(map[string]string{extra: "acme/tools-*"}), change: func(q *Request) { q.Writes = true }, want: "lib=2",
		},
		"no Repository of the namespace matches": {lists: []string{"acme/lib"}, data: open, says: reasonNotInNamespace},
		"no glob":                                {lists: []string{"acme/[a"}, data: open, says: reasonBadGlob},
		"another GitHub": {
			setup: func(c *cluster) { c.owned("team", "lib", "https://ghe.example.com/acme/lib") },
			lists: []string{"acme/lib"}, data: open, says: reasonNotInNamespace,
		},
		"the installation does not cover it": {
			setup: func(c *cluster) { c.owned("team", "x", "https://github.com/other/x") },
			lists: []string{"other/x"}, data: open, skip: "other/x, which the App's installation does not cover",
		},
		"no App": {
			setup: func(c *cluster) { c.owned("team", "lib", lib) }, lists: []string{"acme/lib"}, data: open,
			change: func(q *Request) { q.Event.InstallationID = 0 },
		},
		"too many": {
			data: map[string]string{extra: "acme/*"}, says: reasonTooMany,
			change: func(q *Request) {
				q.Covered = func(context.Context) (all []v1alpha1.Project, err error) {
					for id := range int64(MaxOthers + 2) {
						all = append(all, v1alpha1.Project{ID: id + 1, Owner: "acme", Name: fmt.Sprint("r", id)})
					}
					return all, nil
				}
			},
		},
		"the list cannot be read": {
			data: map[string]string{extra: "acme/*"}, says: "Down",
			change: func(q *Request) {
				q.Covered = func(context.Context) ([]v1alpha1.Project, error) {
					return nil, fault.New(fault.Transient, "Down", errors.New("outage"))
				}
			},
		},

		// What a tenant may try.
		"a Repository with the URL of another namespace": {
			setup: func(c *cluster) {
				c.owned("victim", "secret", "https://github.com/acme/secret", bound(4))
				c.repository("team", "secret", "https://github.com/acme/secret")
			},
			lists: []string{"acme/secret"}, data: open, says: reasonNotInNamespace,
		},
		"another URL of a repository of another namespace": {
			setup: func(c *cluster) {
				c.owned("victim", "secret", "https://github.com/acme/secret", bound(4))
				c.owned("team", "secret", "http://github.com/acme/secret")
			},
			lists: []string{"acme/secret"}, data: open, says: reasonNotInNamespace,
		},
		"a claim of a Repository that is gone": {
			setup: func(c *cluster) {
				c.owned("team", "lib", lib, func(held *v1alpha1.RepositoryClaim) {
					held.Status.ReleasedAt = &metav1.Time{Time: time.Unix(1, 0)}
				})
			},
			lists: []string{"acme/lib"}, data: open, says: reasonNotInNamespace,
		},
		"a claim whose Repository has another URL now": {
			setup: func(c *cluster) {
				c.owned("team", "lib", lib)
				c.repository("team", "lib", "https://github.com/acme/secret")
			},
			lists: []string{"acme/*"}, data: open, says: reasonNotInNamespace,
		},
		"another repository has the name now": {
			setup: func(c *cluster) { c.owned("team", "lib", lib, bound(99)) }, lists: []string{"acme/lib"}, data: open,
			skip: "acme/lib, because another repository has its name now",
		},
		"the newest event of the URL was refused": {
			setup: func(c *cluster) {
				c.owned("team", "lib", lib, bound(99), func(held *v1alpha1.RepositoryClaim) {
					held.Status.Refused = held.Status.Bound.DeepCopy()
					held.Status.Refused.ID = 2
				})
			},
			lists: []string{"acme/lib"}, data: open, says: reasonNotInNamespace,
		},
		"a proof is required and missing": {
			setup: func(c *cluster) { c.owned("team", "lib", lib) }, lists: []string{"acme/lib"},
			data: with(map[string]string{"url-owners": "x: [https://github.com/x/*]"}), says: reasonNotInNamespace,
		},
		"a proof is required and there": {
			setup: func(c *cluster) { c.owned("team", "lib", lib, bound(2), proven) },
			lists: []string{"acme/lib"}, data: with(map[string]string{"url-owners": "x: [https://github.com/x/*]"}), want: "lib=2",
		},
		"the proof is another repository's, and the Repository confirms the one that has its name now": {
			setup: func(c *cluster) {
				c.owned("team", "lib", lib, bound(99), proven)
				c.repository("team", "lib", lib).Annotations = map[string]string{plumbline.RepositoryIDAnnotation: "1/2"}
			},
			lists: []string{"acme/lib"}, data: with(map[string]string{"url-owners": "x: [https://github.com/x/*]"}),
			says: reasonNotInNamespace,
		},
		"the proof is another repository's, and the Repository was created again": {
			setup: func(c *cluster) {
				c.owned("team", "lib", lib, bound(99), proven)
				c.repository("team", "lib", lib).UID = "new"
			},
			lists: []string{"acme/lib"}, data: with(map[string]string{"url-owners": "x: [https://github.com/x/*]"}),
			says: reasonNotInNamespace,
		},
		"the administrator lists the URL for another namespace": {
			setup: func(c *cluster) { c.owned("team", "lib", lib, bound(2), proven) },
			lists: []string{"acme/lib"}, data: with(map[string]string{"url-owners": "x: [https://github.com/acme/*]"}),
			says: reasonNotInNamespace,
		},
		"the administrator lists the URL for the namespace": {
			setup: func(c *cluster) { c.owned("team", "lib", lib) }, lists: []string{"acme/lib"},
			data: with(map[string]string{"url-owners": "team: [https://github.com/acme/*]"}), want: "lib=2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			if test.setup != nil {
				test.setup(c)
			}
			change := func(*Request) {}
			if test.change != nil {
				change = test.change
			}
			got, skipped, err := c.others(test.lists, test.data, change)
			reason := ""
			if f := fault.Of(err); f != nil {
				reason = f.Reason
			}
			if diff := cmp.Diff([]string{test.want, test.skip, test.says}, []string{got, skipped, reason}); diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

// What is not listed costs no call.
func TestNothingListedListsNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	fail := func(q *Request) {
		q.Covered = func(context.Context) ([]v1alpha1.Project, error) {
			t.Error("the installation was listed")
			return nil, nil
		}
	}
	for name, data := range map[string]map[string]string{"none": nil, "refused": {"secret-github-app-token-scoped": "true"}} {
		lists := map[string][]string{"refused": {"acme/lib"}}[name]
		if _, _, err := c.others(lists, data, fail); (err != nil) != (name == "refused") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
