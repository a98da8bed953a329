// SPDX-License-Identifier: Apache-2.0

package pac

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/openshift-pipelines/pipelines-as-code/pkg/cli/info"
	"github.com/openshift-pipelines/pipelines-as-code/pkg/params"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"
)

const (
	prefix = "pipelinesascode.tekton.dev/"
	// konflux is the prefix under which integration-service copies each label and annotation with
	// PaC's prefix from a PipelineRun to its Snapshot.
	konflux = "pac.test.appstudio.openshift.io/"
)

// snapshot has the labels and annotations that integration-service copies.
type snapshot struct{ labels, annotations map[string]string }

func snapshotOf(t *testing.T, file string) snapshot {
	t.Helper()
	run := goldenRun(t, file)
	copied := func(from map[string]string) map[string]string {
		to := map[string]string{}
		for key, value := range from {
			if name, is := strings.CutPrefix(key, prefix); is {
				to[konflux+name] = value
			}
		}
		return to
	}
	return snapshot{copied(run.Labels), copied(run.Annotations)}
}

// konflux-ci/integration-service, tekton/build_pipeline.go and tekton/consts/consts.go: what it
// reads from the PipelineRun of a build.
func TestIntegrationServiceReadsPipelineRun(t *testing.T) {
	t.Parallel()
	for file, pull := range map[string]bool{"push.yaml": false, "pull_request.yaml": true, "merge_request.yaml": true} {
		run := goldenRun(t, file)
		// IsPLRCreatedByPACPushEvent: a push has no such label.
		if _, found := run.Labels[prefix+"pull-request"]; found != pull {
			t.Errorf("%s: label pull-request: %t", file, found)
		}
		// GetPRGroupFromBuildPLR: the branch before an @, with the organisation if it is main.
		for _, name := range []string{"source-branch", "url-org", "sha", "repo-url"} {
			if run.Annotations[prefix+name] == "" {
				t.Errorf("%s: annotation %s is missing", file, name)
			}
		}
	}
}

// konflux-ci/integration-service, gitops/snapshot.go, IsSnapshotCreatedByPACPushEvent, and
// status/reporter_github.go and status/reporter_gitlab.go, Detect and Initialize: what it reads
// from a Snapshot to report on the commit.
func TestIntegrationServiceReportsForSnapshot(t *testing.T) {
	t.Parallel()
	for file, c := range map[string]struct {
		service, event string
		labels         []string
		annotations    []string
	}{
		"push.yaml": {"github", "push", []string{"url-org", "url-repository", "sha"},
			[]string{"installation-id", "repo-url"}},
		"pull_request.yaml": {"github", "pull_request", []string{"url-org", "url-repository", "sha", "pull-request"},
			[]string{"installation-id", "repo-url", "pull-request", "source-repo-url", "branch"}},
		"merge_request.yaml": {"gitlab", "Merge_Request", []string{"sha", "pull-request"},
			[]string{"repo-url", "target-project-id", "source-project-id", "pull-request", "source-repo-url", "branch"}},
	} {
		s := snapshotOf(t, file)
		// Detect reads the provider from either; older versions only from the label.
		if s.labels[konflux+"git-provider"] != c.service || s.annotations[konflux+"git-provider"] != c.service {
			t.Errorf("%s: it is not of %s: %v", file, c.service, s)
		}
		if s.labels[konflux+"event-type"] != c.event {
			t.Errorf("%s: the event is %q", file, s.labels[konflux+"event-type"])
		}
		for _, name := range c.labels {
			if s.labels[konflux+name] == "" {
				t.Errorf("%s: label %s is missing", file, name)
			}
		}
		for _, name := range c.annotations {
			value := s.annotations[konflux+name]
			if value == "" {
				t.Errorf("%s: annotation %s is missing", file, name)
			}
			if _, err := strconv.ParseInt(
				value,
				10,
				64,
			); err != nil &&
				(strings.HasSuffix(name, "-id") || name == "pull-request") {
				t.Errorf("%s: annotation %s is %q, and is read as a number", file, name, value)
			}
		}
	}
}

// konflux-ci/e2e-tests, tests/integration-service/pipelinerun-resolution.go, pacLabelsToCheck and
// expectedLabels: labels of a PipelineRun as an older PaC wrote it. The label check-run-id is
// written once the Git service has accepted the check (pkg/reconciler/gitevent/annotate).
func TestPipelineRunHasLabelsOfKonfluxTests(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"sender", "branch", "url-org", "original-prname", "url-repository", "repository", "sha", "git-provider", "event-type",
	} {
		for _, file := range []string{"push.yaml", "pull_request.yaml", "merge_request.yaml"} {
			if goldenRun(t, file).Labels[prefix+name] == "" {
				t.Errorf("%s: label %s is missing", file, name)
			}
		}
	}
	for _, name := range []string{"target-project-id", "source-project-id"} {
		if goldenRun(t, "merge_request.yaml").Labels[prefix+name] == "" {
			t.Errorf("label %s is missing", name)
		}
	}
}

// openshift-pipelines/console-plugin, src/consts.ts (RepositoryLabels), and what selects by it:
// src/components/hooks/useTektonResult.ts (useGetPipelineRuns, the runs of a Repository's page) and
// src/components/repositories-list/RepositoriesRow.tsx (the last run and its event).
func TestOpenShiftConsoleFindsPipelineRuns(t *testing.T) {
	t.Parallel()
	for file, branch := range map[string]string{
		"push.yaml": "refs-heads-main", "pull_request.yaml": "main", "merge_request.yaml": "main",
	} {
		run := goldenRun(t, file)
		if !labels.SelectorFromSet(labels.Set{prefix + "repository": "app-repo"}).Matches(labels.Set(run.Labels)) {
			t.Errorf("%s is not on the page of its Repository: %v", file, run.Labels)
		}
		for _, name := range []string{"url-repository", "url-org", "sha", "event-type"} {
			if run.Labels[prefix+name] == "" {
				t.Errorf("%s: label %s is missing", file, name)
			}
		}
		// Links to the repository and the commit, and since 2025 the branch, are annotations.
		for _, name := range []string{"repo-url", "sha-url", "sha-title", "branch"} {
			if run.Annotations[prefix+name] == "" {
				t.Errorf("%s: annotation %s is missing", file, name)
			}
		}
		// src/components/repositories/repository-utils.tsx, sanitizeBranchName, reads refs-heads-.
		if run.Labels[prefix+"branch"] != branch {
			t.Errorf("%s: the branch is %q", file, run.Labels[prefix+"branch"])
		}
	}
}

// The commands create repository and webhook of `tkn pac` read the address of new webhooks from
// ConfigMap pipelines-as-code-info: pkg/cli/webhook/webhook.go, Install. Its namespace is one of
// those in pkg/cmd/tknpac/bootstrap/bootstrap.go, getConfigMap.
func TestTknPacFindsAddressOfWebhooks(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../../config/optional/pipelines-as-code-names.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, document, _ := strings.Cut(string(data), "\n---\n")
	var names corev1.ConfigMap
	if err := yaml.Unmarshal([]byte(strings.Split(document, "\n---\n")[0]), &names); err != nil {
		t.Fatal(err)
	}
	names.Data["controller-url"] = "https://hooks.example.com"
	run := params.New()
	run.Clients.Kube = kubefake.NewSimpleClientset(&names)
	found, err := info.GetPACInfo(t.Context(), run, "pipelines-as-code")
	if err != nil || found.ControllerURL != "https://hooks.example.com" {
		t.Errorf("%+v: %v", found, err)
	}
}

// tektoncd/chains, pkg/chains/formats/slsa/attest/attest.go, Invocation: an attestation has the
// labels and annotations of the run, without Chains' own. Konflux's tools and the policies of
// Conforma read commit, repository and log from them.
func TestAttestationHasCommitAndLog(t *testing.T) {
	t.Parallel()
	run := goldenRun(t, "push.yaml")
	for _, name := range []string{"sha", "repo-url", "log-url", "sha-title", "event-type"} {
		if run.Annotations[prefix+name] == "" {
			t.Errorf("annotation %s is missing", name)
		}
	}
	for key := range run.Annotations {
		if strings.HasPrefix(key, "chains.tekton.dev/") {
			t.Errorf("annotation %s is Chains' own", key)
		}
	}
}
