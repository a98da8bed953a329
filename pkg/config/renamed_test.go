// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/configmap"
)

func TestStoreReadsConfigMapOfAnotherName(t *testing.T) {
	const name = "pipelines-as-code"
	logger := &recordingLogger{}
	store, watcher := NewStore(logger), &configmap.ManualWatcher{Namespace: "ci"}
	store.WatchConfigs(Watching(watcher, name))
	change := func(name, key, value string) {
		watcher.OnChange(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: name}, Data: map[string]string{key: value},
		})
	}
	change(Name, keyApplicationName, "default name")
	change(name, keyApplicationName, "other name")
	if got := store.Load().ApplicationName; got != "other name" {
		t.Errorf("application-name is %q", got)
	}
	change(name, keySettledCap, "many")
	if all := strings.Join(logger.errors, "\n"); !strings.Contains(all, "ConfigMap ci/pipelines-as-code: these keys") {
		t.Errorf("the log names another ConfigMap: %s", all)
	}
	change(name, "trusted-provider-hostnames", "git.example.com")
	const ignored = `ConfigMap ci/pipelines-as-code: key "trusted-provider-hostnames" of Pipelines-as-Code has no effect`
	if all := strings.Join(logger.infos, "\n"); !strings.Contains(all, ignored) {
		t.Errorf("the log does not name the key: %s", all)
	}
}
