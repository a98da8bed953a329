// SPDX-License-Identifier: Apache-2.0

package play

import (
	"os"
	"path/filepath"
	"testing"
)

// What stands for pods, and the admission webhook, is left out; the ConfigMap asks for no logs of nodes that are not there.
func TestWhatIsShippedIsAdapted(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"100.yaml":         "# a comment\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: space}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n",
		"200.yaml":         "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: pipelines-as-code}\ndata: {error-log-snippet: \"true\", application-name: CI}\n",
		"300-webhook.yaml": "kind: ValidatingWebhookConfiguration\nmetadata: {name: w}\n",
		"400.txt":          "kind: Secret\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := shipped(dir, map[string]string{"auto-configure": "maybe"})
	if err != nil {
		t.Fatal(err)
	}
	const want = `---
apiVersion: v1
kind: Namespace
metadata:
  name: space
---
apiVersion: v1
data:
  application-name: CI
  auto-configure: maybe
  error-detection-from-container-logs: "false"
  error-log-snippet: "false"
  tekton-dashboard-url: https://dashboard.example.com
kind: ConfigMap
metadata:
  name: pipelines-as-code
`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, err := shipped(t.TempDir(), nil); err == nil {
		t.Error("a folder without manifests is taken for a release")
	}
}
