// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/remote"
	"github.com/plumbline-ci/plumbline/pkg/resolve"
)

// provenanceDefaultBranch is the value of settings.pipelinerun_provenance that takes definitions from the default branch.
const provenanceDefaultBranch = "default_branch"

// provenance returns the one commit of the target repository that definitions and all they refer to in it are read at.
// The default branch is asked for once: it may move while the plan is made.
func provenance(ctx context.Context, git *provider.Client, head git.Head, repository *pacv1alpha1.Repository) (string, error) {
	settings := repository.Spec.Settings
	if settings == nil || settings.PipelineRunProvenance != provenanceDefaultBranch {
		return head.SHA, nil
	}
	sha, err := git.DefaultBranch(ctx)
	if err != nil {
		return "", fmt.Errorf("taking the definitions from the default branch: %w", err)
	}
	return sha, nil
}

// maxReferences bounds what one event fetches: each reference may be a call to somebody's service.
const maxReferences = 500

// gitFiles is what references need of the event's repository and its service.
type gitFiles interface {
	File(ctx context.Context, sha, path string) ([]byte, error)
	FileAt(ctx context.Context, address string) ([]byte, error)
}

// references reads what annotations refer to, each thing once for all pipelines of an event. It is used by one plan.
type references struct {
	git  gitFiles
	web  *remote.Client
	sha  string
	from config.Remote
	// service is the host and port of the Git service, which configuration names.
	service string
	// missing tells whether what the service does not show at a web address is believed not to be there.
	missing func(address string) bool
	known   map[place]answer
	fetched int
}

// place is where a reference leads, and how it is read there.
type place struct {
	form form
	at   string
	hub  remote.Hub
}

// form is how a reference is read.
type form int

const (
	formFile form = iota
	formWeb
	formHub
)

type answer struct {
	file git.File
	err  error
}

// newReferences returns nil when configuration says that references are not followed. The files are those of the
// definitions, which are not read again.
func (w *work) newReferences(git gitFiles, sha string, files []git.File) resolve.References {
	if !w.config.Remote.Fetch {
		return nil
	}
	r := &references{git: git, web: w.r.Remote, sha: sha, from: w.config.Remote, service: w.config.GitHubURL, known: map[place]answer{}}
	r.missing = func(address string) bool { return w.r.misses.believed(w.event.Name+" "+address, w.r.clock.Now()) }
	for _, file := range files {
		r.known[place{form: formFile, at: file.Path}] = answer{file: file}
	}
	return r
}

// Read implements resolve.References.
func (r *references) Read(ctx context.Context, kind resolve.Kind, reference string) (git.File, error) {
	where, err := r.locate(kind, reference)
	if err != nil {
		return git.File{}, fmt.Errorf("%s: %w", show(reference), err)
	}
	if known, found := r.known[where]; found {
		return known.file, known.err
	}
	if r.fetched++; r.fetched > maxReferences {
		return git.File{}, fault.Invalidf("TooManyReferences", "the pipelines for this event refer to more than %d files", maxReferences)
	}
	data, err := r.read(ctx, where)
	file := git.File{Path: shownAt(where), Data: data}
	if where.form == formHub {
		file.Path = reference + " (" + file.Path + ")"
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", file.Path, err)
	}
	r.known[where] = answer{file, err}
	return file, err
}

// locate reads the forms of spec/compatibility.md 4.3, in its order.
func (r *references) locate(kind resolve.Kind, reference string) (place, error) {
	scheme, name, isAddress := strings.Cut(reference, "://")
	switch {
	case isAddress && (scheme == "http" || scheme == "https"):
		return place{form: formWeb, at: reference}, nil
	case isAddress:
		hub, known := r.from.Catalogs[scheme]
		if !known {
			return place{}, fault.Invalidf("BadReference", "no hub is called %q: the ConfigMap's catalog-N-id name the hubs there are", scheme)
		}
		return onHub(hub, kind, name)
	case strings.Contains(reference, "/"):
		return place{form: formFile, at: path.Clean(strings.TrimLeft(reference, "/"))}, nil
	}
	return onHub(r.from.Hub, kind, reference)
}

func onHub(hub remote.Hub, kind resolve.Kind, name string) (place, error) {
	kinds := map[resolve.Kind]string{resolve.KindTask: remote.HubTask, resolve.KindPipeline: remote.HubPipeline}
	address, err := hub.Address(kinds[kind], name)
	return place{form: formHub, at: address, hub: hub}, err
}

func (r *references) read(ctx context.Context, where place) ([]byte, error) {
	policy := remote.Policy{Allowed: r.from.Allowed, Refused: r.from.Refused}
	switch where.form {
	case formHub:
		return r.web.Package(ctx, where.hub, where.at, policy)
	case formFile:
		return r.git.File(ctx, r.sha, where.at)
	}
	policy.Trusted = remote.HostPort(r.service)
	data, why := r.git.FileAt(ctx, where.at)
	if !fault.Is(why, fault.Ignored) {
		return data, why
	}
	data, err := r.web.Get(ctx, where.at, policy, remote.MaxText)
	f := fault.Of(why)
	if err == nil || f.Reason == provider.ReasonOtherAddress {
		return data, err
	}
	err = fmt.Errorf("%w (and with the credentials of the repository: %s)", err, f.Message)
	if f.Reason == fault.ReasonNotFound && fault.Is(err, fault.Invalid) && !r.missing(where.at) {
		// Whoever may not log in is never shown what is private, so that this rests on the first answer alone.
		return nil, fault.Throttledf(fault.ReasonNotFound, missApart, "%s", fault.Of(err).Message)
	}
	return nil, err
}

func shownAt(where place) string {
	if where.form == formFile {
		return where.at
	}
	return remote.Show(where.at)
}

// show is a reference for people: whole addresses may hold what is secret.
func show(reference string) string {
	if u, err := url.Parse(reference); err == nil && u.Host != "" {
		return remote.Show(reference)
	}
	return fmt.Sprintf("%q", reference)
}
