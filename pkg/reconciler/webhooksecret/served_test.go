// SPDX-License-Identifier: Apache-2.0

package webhooksecret

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logtesting "knative.dev/pkg/logging/testing"

	"github.com/plumbline-ci/plumbline/pkg/config"
)

// A controller that starts with a bad value does not know what is served: receivers that know the earlier value need the copies. What is
// not served has none.
func TestCopiesAreKeptWhileTheSettingCannotBeRead(t *testing.T) {
	w := newWorld(t, secret("team", "lab", webhook("s")))
	w.repository("team", "one", "lab")
	w.reconcile()
	for _, step := range []struct{ setting, want string }{{"bad_value", "s"}, {"team", "s"}, {"!team", ""}} {
		settings := config.NewStore(logtesting.TestLogger(t))
		settings.OnConfigChanged(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: config.Name}, Data: map[string]string{"serve-namespaces": step.setting},
		})
		w.restart()
		w.r.serve(w.cached, settings)
		w.reconcile()
		w.wantCopy("team", "lab", "webhook.secret", step.want)
	}
}
