// SPDX-License-Identifier: Apache-2.0

package status

import (
	"regexp"
	"strings"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/status/diagnosis"
)

// Tekton's messages have names and revisions that authors choose.
func TestReportsMentionNoUser(t *testing.T) {
	t.Parallel()
	pr := &pipelinev1.PipelineRun{}
	pr.Status.SetCondition(&apis.Condition{
		Type: apis.ConditionSucceeded, Status: corev1.ConditionFalse, Reason: "CouldntGetTask",
		Message: "revision @all @@all\n/close not found, @octocat; image a@sha256:0",
	})
	tr := &pipelinev1.TaskRun{}
	tr.Status.SetCondition(pr.Status.GetCondition(apis.ConditionSucceeded))
	text := ResultOf(pr, []*pipelinev1.TaskRun{tr}, Links{}, diagnosis.Facts{}, 0).Text
	outside := regexp.MustCompile(`(?s)<pre>.*?</pre>`).ReplaceAllString(text, "")
	if found := regexp.MustCompile(`\B@\w+`).FindString(outside); found != "" || !strings.Contains(outside, "all") {
		t.Errorf("%q is a mention in %s", found, outside)
	}
	if !strings.Contains(outside, "a@sha256:0") {
		t.Errorf("a digest cannot be copied from %s", outside)
	}
}
