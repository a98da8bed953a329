// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/delivery"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	pac "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/provider/github"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab"
)

// started is an event for which Pipelines-as-Code has started pipelines, as its PipelineRuns say.
type started struct {
	// key identifies the event among those of its Repository.
	key string
	// kind is the event that Plumbline plans; why says why it cannot be planned.
	kind delivery.Kind
	why  string

	service, url, headURL, base, head, sha, title, sender string
	number, project, installation                         int64
	byApp                                                 bool
	// names are the pipelines that were started; last is when the newest of them was.
	names []string
	last  time.Time
}

// started returns the events of each Repository, the newest first.
func (s *surveyor) started(ctx context.Context) (map[string][]started, error) {
	runs := schema.GroupVersionResource{Group: "tekton.dev", Version: "v1", Resource: "pipelineruns"}
	var all []metav1.PartialObjectMetadata
	err := kube.Pages(metav1.ListOptions{}, func(o metav1.ListOptions) (string, error) {
		o.LabelSelector = pac.ManagedByLabel + "=" + pac.ManagedBy + ",!" + plumbline.EventLabel
		list, err := s.cluster.Metadata.Resource(runs).List(ctx, o)
		if err != nil {
			return "", err
		}
		all = append(all, list.Items...)
		return list.Continue, nil
	})
	if err != nil && !apierrors.IsNotFound(err) { // the requirements name a Tekton that is too old
		return nil, s.unlessForbidden("reading PipelineRuns", err)
	}
	return eventsOf(all), nil
}

// eventsOf groups PipelineRuns by Repository and event.
func eventsOf(runs []metav1.PartialObjectMetadata) map[string][]started {
	all := map[string][]started{}
	for _, run := range runs {
		e := eventOf(run.Annotations)
		e.last = run.CreationTimestamp.Time
		of := run.Namespace + "/" + run.Annotations[pac.Repository]
		name := strings.TrimSuffix(run.Annotations[pac.OriginalPRName], "-")
		at := slices.IndexFunc(all[of], func(other started) bool { return other.key == e.key })
		if at < 0 {
			at = len(all[of])
			all[of] = append(all[of], e)
		}
		known := &all[of][at]
		if !slices.Contains(known.names, name) {
			known.names = append(known.names, name)
		}
		if e.last.After(known.last) {
			known.last = e.last
		}
	}
	for _, events := range all {
		slices.SortStableFunc(events,
			func(a, b started) int { return cmp.Or(b.last.Compare(a.last), cmp.Compare(a.key, b.key)) })
		for i := range events {
			slices.Sort(events[i].names)
		}
	}
	return all
}

// eventOf reads the annotations that Pipelines-as-Code writes to a PipelineRun.
func eventOf(a map[string]string) started {
	number := func(name string) int64 { n, _ := strconv.ParseInt(a[name], 10, 64); return n }
	e := started{
		service: github.Name, url: a[pac.RepoURL], headURL: cmp.Or(a[pac.SourceRepoURL], a[pac.RepoURL]),
		base: a[pac.Branch], head: a[pac.SourceBranch], sha: a[pac.SHA], title: a[pac.SHATitle],
		sender: cmp.Or(a[pac.Sender], "somebody"), number: number(pac.PullRequest), project: number(pac.TargetProjectID),
		installation: number(pac.InstallationID),
	}
	e.byApp = e.installation > 0
	if provider := a[pac.GitProvider]; !strings.HasPrefix(provider, github.Name) && provider != "" {
		e.service = provider
	}
	e.kind, e.why = kindOf(e.service, a[pac.EventType], e.base)
	if e.kind == delivery.Tagged {
		e.base = strings.TrimPrefix(e.base, tagsPrefix)
	} else {
		e.base, e.head = strings.TrimPrefix(e.base, headsPrefix), strings.TrimPrefix(e.head, headsPrefix)
	}
	e.key = strings.Join([]string{e.sha, a[pac.EventType], a[pac.PullRequest], e.base}, " ")
	return e
}

const (
	headsPrefix = "refs/heads/"
	tagsPrefix  = "refs/tags/"
)

// kindOf returns the kind of an event, or why it is not compared: its PipelineRuns do not say
// everything that decides.
func kindOf(service, eventType, base string) (delivery.Kind, string) {
	if service != github.Name && service != gitlab.Name {
		return 0, "Plumbline does not serve the Git service"
	}
	switch strings.ToLower(eventType) {
	case "pull_request", "merge request", "merge_request":
		return delivery.Opened, ""
	case "push", "tag push":
		if strings.HasPrefix(base, tagsPrefix) || strings.EqualFold(eventType, "tag push") {
			return delivery.Tagged, ""
		}
		return delivery.Pushed, ""
	case "incoming":
		return 0, "the event is a request to /incoming"
	case "pull_request_labeled", "label_update":
		return 0, "the event is a label, whose name is not recorded"
	}
	return 0, "the event is a comment, whose text is not recorded"
}
