// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/pac"
	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	paclisters "github.com/plumbline-ci/plumbline/pkg/client/listers/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// concluder concludes the checks that PaC has left open.
type concluder struct {
	pool         *credentials.Pool
	settings     *config.Config
	repositories map[string]*pacv1alpha1.Repository
	claims       map[string]*v1alpha1.RepositoryClaim
}

// newConcluder reads what a conclusion needs. It logs in as PaC did, while PaC's Secret is there.
func (f *Finish) newConcluder(ctx context.Context, found *pac.Installation) (*concluder, error) {
	cm, err := f.settings(ctx)
	if err != nil {
		return nil, err
	}
	settings, _ := config.New(cm.Data)
	login := credentials.Options{
		Namespace: f.Namespace, AppSecret: f.AppSecret, GlobalRepository: f.Global,
		Providers: map[string]provider.Provider{
			github.Name: github.New(github.Options{}), gitlab.Name: gitlab.New(gitlab.Options{}),
		},
		Kube: f.Cluster.Kube.CoreV1(), Repositories: f.Cluster.Own.PipelinesascodeV1alpha1(),
		Calls: credentials.Calls{
			Acquire: func(context.Context, *v1alpha1.GitEvent) (func(), error) { return func() {}, nil },
		},
		Clock: clock.RealClock{},
	}
	if found != nil {
		if login, err = f.asPaC(ctx, found, login, settings); err != nil {
			return nil, err
		}
	}
	list, err := f.Cluster.Own.PipelinesascodeV1alpha1().Repositories(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, kube.Failed("listing the Repositories", err)
	}
	c := &concluder{settings: settings, repositories: map[string]*pacv1alpha1.Repository{}}
	known := cache.NewIndexer(cache.MetaNamespaceKeyFunc,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for i := range list.Items {
		repository := &list.Items[i]
		c.repositories[repository.Namespace+"/"+repository.Name] = repository
		if err := known.Add(repository); err != nil {
			return nil, err
		}
	}
	login.Cache = paclisters.NewRepositoryLister(known)
	c.pool = credentials.New(login)
	c.claims, err = f.claims(ctx)
	return c, err
}

// asPaC takes the credentials, the global Repository and the name of checks from PaC.
func (f *Finish) asPaC(
	ctx context.Context, found *pac.Installation, login credentials.Options, settings *config.Config,
) (credentials.Options, error) {
	cm, err := f.Cluster.Kube.CoreV1().ConfigMaps(found.Namespace).Get(ctx, found.ConfigMap, metav1.GetOptions{})
	switch {
	case err == nil:
		theirs, _ := config.New(map[string]string{"application-name": cm.Data["application-name"]})
		settings.ApplicationName = theirs.ApplicationName
	case !apierrors.IsNotFound(err):
		return login, kube.Failed(fmt.Sprintf("reading ConfigMap %s/%s", found.Namespace, found.ConfigMap), err)
	}
	_, err = f.Cluster.Kube.CoreV1().Secrets(found.Namespace).Get(ctx, found.Secret, metav1.GetOptions{})
	switch {
	case err == nil:
		login.Namespace, login.AppSecret, login.GlobalRepository = found.Namespace, found.Secret, found.Global
	case !apierrors.IsNotFound(err):
		return login, kube.Failed(fmt.Sprintf("reading Secret %s/%s", found.Namespace, found.Secret), err)
	}
	return login, nil
}

// conclude concludes the check of a run with its result, if it is open at the Git service.
func (c *concluder) conclude(ctx context.Context, run *pipelinev1.PipelineRun, result *v1alpha1.Result) error {
	event, err := c.eventOf(run, result)
	if err != nil {
		return err
	}
	session := c.pool.Begin(event, c.settings)
	defer session.End(false, false)
	client, err := session.Connect(ctx) // it looks the project up if no delivery has said its id
	if err != nil {
		return err
	}
	if event.Spec.InstallationID != 0 && !byApp(run) {
		return fmt.Errorf("its status was set with a token, and Repository %s/%s does not name one with a webhook secret "+
			"any more", run.Namespace, event.Spec.Repository.Name)
	}
	if pull := event.Spec.PullRequest; pull != nil && pull.HeadProjectID == 0 {
		pull.HeadProjectID = event.Spec.Project.ID
	}
	id := run.Annotations[pipelinesascode.CheckRunID]
	head := git.Head{
		SHA: event.Spec.SHA, Project: event.Spec.Project, Ref: event.Spec.HeadRef, PullRequest: event.Spec.PullRequest,
	}
	in := status.Input{Application: c.settings.ApplicationName, Event: event}
	for _, of := range event.Status.Runs {
		in.Runs = append(in.Runs, status.RunState{Run: of, Links: c.settings.Console.Links(of)})
	}
	for _, check := range status.Desired(in) {
		check.OnlyOpen, check.Adopted = true, true
		if _, err := client.Put(ctx, head, id, check, false); err != nil {
			return err
		}
	}
	return nil
}

// eventOf returns an event that has only the end of a run left to report. It is not stored. Users
// of the namespace can change the run's annotations, so the Repository, and the claim of its URL,
// decide where it is reported.
func (c *concluder) eventOf(run *pipelinev1.PipelineRun, result *v1alpha1.Result) (*v1alpha1.GitEvent, error) {
	said := run.Annotations
	name := run.Namespace + "/" + said[pipelinesascode.Repository]
	repository := c.repositories[name]
	if repository == nil || !v1alpha1.SameURL(repository.Spec.URL, said[pipelinesascode.RepoURL]) {
		return nil, fmt.Errorf("no right to report: Repository %s is gone or has another URL now", name)
	}
	claim, own := claimOf(c.claims, repository)
	if !own {
		return nil, fmt.Errorf("not served: Repository %s: see kubectl -n %s describe repository %s",
			name, repository.Namespace, repository.Name)
	}
	service := said[pipelinesascode.GitProvider]
	if strings.HasPrefix(service, github.Name) { // github-enterprise
		service = github.Name
	}
	if service != github.Name && service != gitlab.Name {
		return nil, fmt.Errorf("its status is at %s, which Plumbline does not serve", service)
	}
	event := &v1alpha1.GitEvent{
		ObjectMeta: metav1.ObjectMeta{Name: "left-" + string(run.UID)},
		Spec: v1alpha1.GitEventSpec{
			Provider:       service,
			Incoming:       &v1alpha1.Incoming{}, // as for these requests, no delivery has said the project's id
			InstallationID: number(said[pipelinesascode.InstallationID]),
			Repository: v1alpha1.RepositoryReference{
				Namespace: run.Namespace, Name: repository.Name, UID: repository.UID, URL: repository.Spec.URL,
			},
			Project: provider.ProjectAt(c.baseOf(run, repository), claim.Spec.URL),
			SHA:     said[pipelinesascode.SHA],
			HeadRef: said[pipelinesascode.SourceBranch],
		},
		Status: v1alpha1.GitEventStatus{
			Disposition: v1alpha1.DispositionRuns,
			Runs: []v1alpha1.Run{{
				Pipeline: said[pipelinesascode.OriginalPRName], Namespace: run.Namespace, Name: run.Name, UID: run.UID,
				Result: result,
			}},
		},
	}
	if bound := claim.Status.Bound; bound != nil && bound.RepositoryUID == repository.UID {
		event.Spec.Project.ID, event.Spec.Project.OwnerID = bound.ID, bound.OwnerID
	}
	if pull := number(said[pipelinesascode.PullRequest]); pull > 0 {
		event.Spec.PullRequest = &v1alpha1.PullRequest{Number: pull}
		if service == gitlab.Name {
			event.Spec.PullRequest.HeadProjectID = number(said[pipelinesascode.SourceProjectID])
		}
	}
	return event, nil
}

// baseOf returns the web URL of the Git service where the check of a run is.
func (c *concluder) baseOf(run *pipelinev1.PipelineRun, repository *pacv1alpha1.Repository) string {
	service := pacv1alpha1.GitProvider{}
	if repository.Spec.GitProvider != nil {
		service = *repository.Spec.GitProvider
	}
	switch {
	case service.Type == gitlab.Name:
		return gitlab.BaseURL(service.URL, repository.Spec.URL, v1alpha1.Project{})
	case byApp(run):
		return c.settings.GitHubURL
	}
	return github.BaseURL(service.URL, repository.Spec.URL, v1alpha1.Project{})
}

// byApp reports whether a GitHub App has created the check of a run.
func byApp(run *pipelinev1.PipelineRun) bool {
	return run.Annotations[pipelinesascode.InstallationID] != ""
}

// number returns 0 for what is no number.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
