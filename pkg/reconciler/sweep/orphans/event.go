// SPDX-License-Identifier: Apache-2.0

package orphans

import (
	"cmp"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
)

// reason is the reason of the result of a run whose event was deleted.
const reason = "GitEventDeleted"

// recorded returns the event with that run alone and its result; nil if the event has recorded no
// result.
func recorded(event *v1alpha1.GitEvent, run *metav1.PartialObjectMetadata) *v1alpha1.GitEvent {
	if event.Status.Plan == nil {
		return nil
	}
	for _, known := range event.Status.Runs {
		if known.Namespace == run.Namespace && known.Result != nil && isOf(run, &known) {
			event = event.DeepCopy()
			event.Status.Runs = []v1alpha1.Run{known}
			return event
		}
	}
	return nil
}

// isOf reports whether a PipelineRun is that of an attempt of a run.
func isOf(object *metav1.PartialObjectMetadata, run *v1alpha1.Run) bool {
	return object.Name == run.Name && object.UID == run.UID ||
		slices.ContainsFunc(run.Attempts, func(earlier v1alpha1.FailedAttempt) bool {
			return object.Name == earlier.Name && object.UID == earlier.UID
		})
}

// isCopy reports whether a user has copied a run of Plumbline under another name, in a console for
// example (docs/adr/0065). The check of the original may be open again, for a newer run.
func isCopy(run *metav1.PartialObjectMetadata) bool {
	return run.Annotations[plumbline.RunKeyAnnotation] != "" &&
		!resources.Named(&run.ObjectMeta, run.Labels[plumbline.InstallationLabel])
}

// earlierThan returns the attempts that the name of a PipelineRun says there were before it.
func earlierThan(run *metav1.PartialObjectMetadata) (all []v1alpha1.FailedAttempt) {
	first := resources.FirstName(&run.ObjectMeta, run.Labels[plumbline.InstallationLabel])
	for name, n := first, 2; name != run.Name; n++ { // FirstName has found that it is one of them
		all = append(all, v1alpha1.FailedAttempt{Name: name})
		name = resources.AttemptName(first, n)
	}
	return all
}

// eventOf returns an event that has only the end of a run left to report. It is not stored. The
// annotations of the run are not trusted: the Repository, and what its URL is bound to, decide
// where it reports.
func eventOf(
	run *metav1.PartialObjectMetadata, repository v1alpha1.RepositoryReference, bound v1alpha1.ProjectIdentity,
) *v1alpha1.GitEvent {
	said := run.Annotations
	event := &v1alpha1.GitEvent{
		ObjectMeta: metav1.ObjectMeta{Name: "lost-" + string(run.UID)},
		Spec: v1alpha1.GitEventSpec{
			Provider:       said[pipelinesascode.GitProvider],
			Repository:     repository,
			InstallationID: number(said[pipelinesascode.InstallationID]),
			SHA:            said[pipelinesascode.SHA],
			HeadRef:        said[pipelinesascode.SourceBranch],
		},
		Status: v1alpha1.GitEventStatus{
			Disposition: v1alpha1.DispositionRuns,
			Runs: []v1alpha1.Run{{
				Pipeline: said[pipelinesascode.OriginalPRName], Namespace: run.Namespace, Name: run.Name, UID: run.UID,
				Result: &v1alpha1.Result{
					Outcome: v1alpha1.OutcomeCancelled,
					Reason:  reason,
					Message: "GitEvent " + run.Labels[plumbline.EventLabel] + " was deleted, so Plumbline does not follow PipelineRun " + run.Name +
						" any more. The PipelineRun itself was left as it is.",
				},
				Attempts: earlierThan(run), WithoutState: withoutState(run),
			}},
		},
	}
	event.Spec.Host, event.Spec.Project = projectAt(repository.URL, bound)
	if pr := number(said[pipelinesascode.PullRequest]); pr > 0 {
		event.Spec.PullRequest = &v1alpha1.PullRequest{
			Number: pr, HeadProjectID: cmp.Or(number(said[pipelinesascode.SourceProjectID]), bound.ID),
		}
	}
	return event
}

// withoutState reports whether a PipelineRun was created next to Pipelines-as-Code.
func withoutState(run *metav1.PartialObjectMetadata) bool {
	_, state := run.Annotations[pipelinesascode.State]
	return !state
}

// projectAt returns the project at the URL of a Repository.
func projectAt(at string, id v1alpha1.ProjectIdentity) (host string, project v1alpha1.Project) {
	project = v1alpha1.Project{ID: id.ID, OwnerID: id.OwnerID, URL: strings.TrimSuffix(strings.TrimRight(at, "/"), ".git")}
	u, err := url.Parse(project.URL)
	if err != nil {
		return "", project // no claim has such a URL
	}
	project.Owner, project.Name = strings.Trim(path.Dir(u.Path), "/"), path.Base(u.Path)
	return strings.ToLower(u.Host), project
}

// number returns 0 for what is no number.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
