// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/runtime/tracecontext"
)

const (
	// resultsSummary is read by Tekton Results, which stores it with the record of the run.
	resultsSummary = "results.tekton.dev/recordSummaryAnnotations"
	// tektonSpanContext is read by Tekton's controller, which continues the trace that it names.
	tektonSpanContext = "tekton.dev/pipelinerunSpanContext"
	// controllerInfo tells PaC's tools which objects configure the controller: the names PaC has by
	// default.
	controllerInfo = `{"name":"default","configmap":"pipelines-as-code","secret":"pipelines-as-code-secret", "gRepo": "pipelines-as-code"}`
	// publicGitHub is the host of GitHub; every other host is an Enterprise Server's.
	publicGitHub = "github.com"
)

// runAnnotations are the annotations that PaC's users and tools read, raw, and the run's
// idempotency key.
func runAnnotations(in RunInput) map[string]string {
	spec := &in.Event.Spec
	annotations := map[string]string{
		pipelinesascode.SHATitle:       in.Head.Commit.Title,
		pipelinesascode.SHAURL:         in.Head.Commit.URL,
		pipelinesascode.RepoURL:        spec.Project.URL,
		pipelinesascode.SourceRepoURL:  spec.HeadURL,
		pipelinesascode.URLOrg:         spec.Project.Owner,
		pipelinesascode.URLRepository:  spec.Project.Name,
		pipelinesascode.SHA:            in.Head.SHA,
		pipelinesascode.Sender:         spec.Sender,
		pipelinesascode.EventType:      spec.EventType,
		pipelinesascode.Branch:         in.TargetBranch,
		pipelinesascode.SourceBranch:   in.SourceBranch,
		pipelinesascode.Repository:     spec.Repository.Name,
		pipelinesascode.GitProvider:    spec.Provider,
		pipelinesascode.ControllerInfo: controllerInfo,
		pipelinesascode.OriginalPRName: originalName(in),
		pipelinesascode.State:          pipelinesascode.StateStarted,
		pipelinesascode.SecretCreated:  strconv.FormatBool(in.Secret != ""),
		plumbline.RunKeyAnnotation:     runKey(in),
		resultsSummary:                 summary(spec, in.Head.SHA),
	}
	known := map[string]string{
		pipelinesascode.LogURL:        in.LogURL,
		pipelinesascode.GitAuthSecret: in.Secret,
		pipelinesascode.CloneURL:      spec.Project.CloneURL,
		pipelinesascode.GHEURL:        enterpriseURL(spec),
		tektonSpanContext:             tracecontext.Tekton(in.Event.Annotations),
	}
	if undashed(in.Definition.Name) != undashed(originalName(in)) {
		known[plumbline.DefinitionAnnotation] = in.Definition.Name
	}
	if spec.PullRequest != nil {
		known[pipelinesascode.PullRequest] = strconv.FormatInt(spec.PullRequest.Number, 10)
	}
	maps.Copy(known, projectIDs(spec))
	if spec.InstallationID > 0 {
		known[pipelinesascode.InstallationID] = strconv.FormatInt(spec.InstallationID, 10)
	}
	for key, value := range known {
		if value != "" {
			annotations[key] = value
		}
	}
	return annotations
}

// runKey returns the idempotency key of a run: an object with the planned name and this key is that
// run, whichever process created it.
func runKey(in RunInput) string {
	return fmt.Sprintf("%s/%s/%s#%d", in.Event.Namespace, in.Event.Name, in.Definition.File, in.Definition.Document)
}

// projectIDs are the ids by which GitLab names projects.
func projectIDs(spec *v1alpha1.GitEventSpec) map[string]string {
	if spec.Provider != git.GitLab {
		return nil
	}
	return map[string]string{
		pipelinesascode.TargetProjectID: strconv.FormatInt(spec.Project.ID, 10),
		pipelinesascode.SourceProjectID: strconv.FormatInt(sourceProject(spec), 10),
	}
}

// sourceProject is the id of the project that the commits are in; 0 when that is gone.
func sourceProject(spec *v1alpha1.GitEventSpec) int64 {
	if spec.PullRequest != nil {
		return spec.PullRequest.HeadProjectID
	}
	return spec.Project.ID
}

// enterpriseURL is the base URL of a GitHub Enterprise Server, "" for other services.
func enterpriseURL(spec *v1alpha1.GitEventSpec) string {
	if spec.Provider != git.GitHub || spec.Host == publicGitHub {
		return ""
	}
	return "https://" + spec.Host
}

// recordSummary is what Tekton Results is told, with PaC's names.
type recordSummary struct {
	Repo          string `json:"repo"`
	Commit        string `json:"commit"`
	EventType     string `json:"eventType"`
	PullRequestID int64  `json:"pull_request-id,omitempty"`
}

func summary(spec *v1alpha1.GitEventSpec, sha string) string {
	record := recordSummary{Repo: spec.Project.Name, Commit: sha, EventType: spec.EventType}
	if spec.PullRequest != nil {
		record.PullRequestID = spec.PullRequest.Number
	}
	return mustJSON(record)
}

// AnnotationPatch returns a JSON merge patch that sets labels and annotations and touches nothing
// else. Equal input gives equal bytes.
func AnnotationPatch(labels, annotations map[string]string) []byte {
	type metadata struct {
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	type patch struct {
		Metadata metadata `json:"metadata,omitzero"`
	}
	if len(labels)+len(annotations) == 0 {
		return []byte(mustJSON(patch{}))
	}
	return []byte(mustJSON(patch{Metadata: metadata{Labels: labels, Annotations: annotations}}))
}

// mustJSON encodes values made of strings, numbers and maps of them, which cannot fail.
func mustJSON(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("encoding %T: %v", value, err))
	}
	return string(data)
}
