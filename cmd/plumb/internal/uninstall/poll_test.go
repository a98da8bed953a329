// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
)

// The control plane may restart while checks are closed.
func TestWaitingOutlastsAnAPIServerThatIsAway(t *testing.T) {
	refused := &url.Error{Op: "Get", URL: "https://10.0.0.1", Err: errors.New("connection refused")}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "gitevents"}, "",
		errors.New(`User "eve" cannot list resource "gitevents" in API group "plumbline.dev" in the namespace "plumbline"`))
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"it does not respond":          {refused, ""},
		"it is overloaded":             {apierrors.NewTooManyRequests("later", 1), ""},
		"it is starting":               {apierrors.NewServiceUnavailable("starting"), ""},
		"it takes the account's right": {forbidden, "lacks the right to list gitevents.plumbline.dev"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, []runtime.Object{controller(system)})
			lists := 0
			e.own.PrependReactor("list", "gitevents", func(clienttesting.Action) (bool, runtime.Object, error) {
				lists++
				return lists == 2 || lists == 3, nil, test.err // the first one is for the description
			})
			pods := 0
			e.kube.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				pods++
				return pods == 1, nil, refused
			})
			e.Yes, e.CloseChecks = true, Wait
			err := e.Uninstaller.Run(t.Context())
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if test.want == "" {
				e.says("connection refused. Trying again ...", test.err.Error()+". Trying again ...")
				if said := strings.Count(e.out.String(), "listing the GitEvents"); said != 1 {
					t.Errorf("the problem is said %d times:\n%s", said, e.out.String())
				}
			}
		})
	}
}
