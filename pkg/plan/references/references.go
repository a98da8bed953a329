// SPDX-License-Identifier: Apache-2.0

// Package references reads the Tasks and Pipelines that annotations refer to: files of the
// repository, web addresses and packages of a hub.
package references

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resolve"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
	"github.com/plumbline-ci/plumbline/pkg/provider/web"
)

// maxReferences limits how many references of one event are read: each may be a call to another
// service.
const maxReferences = 500

// maxBytes limits the size of the references of one event, together with the definitions
// themselves.
const maxBytes = 8 << 20

// Files reads the event's repository (provider.Source has the contract).
type Files interface {
	File(ctx context.Context, sha, path string) ([]byte, error)
}

// Addresses reads the Git service's web addresses (provider.Addresses has the contract).
type Addresses interface {
	FileAt(ctx context.Context, address string) ([]byte, error)
}

// Web reads public addresses (web.Client has the contract).
type Web interface {
	Get(ctx context.Context, address string, policy egress.Policy, limit int64) ([]byte, error)
	Package(ctx context.Context, hub web.Hub, address string, policy egress.Policy) ([]byte, error)
}

// Options say where references are read.
type Options struct {
	Files     Files
	Addresses Addresses
	Web       Web
	// SHA is the commit at which files of the repository are read.
	SHA string
	// Remote has the hubs, and what may be fetched.
	Remote config.Remote
	// Service is the Git service's configured web URL, which may be fetched wherever it is.
	Service string
	// Missing is called when the Git service shows nothing at one of its own web addresses. It
	// returns when to retry, 0 to accept that nothing is there. nil accepts that at once.
	Missing func(address string) (again time.Duration)
	// Known are files that were already read at SHA.
	Known []git.File
}

// Reader implements resolve.References for one event. It reads each thing once for all pipelines.
// It is not safe for concurrent use.
type Reader struct {
	Options
	known   map[place]answer
	fetched int
	bytes   int // bytes of all known files
}

// place is a location of a reference, and how it is read.
type place struct {
	form form
	at   string
	hub  web.Hub
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

// New returns a Reader.
func New(o Options) *Reader {
	r := &Reader{Options: o, known: map[place]answer{}}
	for _, file := range o.Known {
		r.known[place{form: formFile, at: file.Path}] = answer{file: file}
		r.bytes += len(file.Data)
	}
	return r
}

// Read implements resolve.References.
func (r *Reader) Read(ctx context.Context, kind resolve.Kind, reference string) (git.File, error) {
	where, err := r.locate(kind, reference)
	if err != nil {
		return git.File{}, fmt.Errorf("%s: %w", show(reference), err)
	}
	if known, found := r.known[where]; found {
		return known.file, known.err
	}
	if r.fetched++; r.fetched > maxReferences {
		return git.File{}, fault.Invalidf(reasonTooManyReferences, "the pipelines for this event refer to more than %d files",
			maxReferences)
	}
	data, err := r.read(ctx, where)
	file := git.File{Path: shownAt(where), Data: data}
	if r.bytes += len(data); err == nil && r.bytes > maxBytes {
		file.Data, err = nil, fault.Invalidf(
			reasonTooManyReferences,
			"with it the definitions of this event and what they refer to have more than %d MiB: no more is read. "+
				"Refer to fewer or smaller files, or let a resolver read them",
			maxBytes>>20,
		)
		r.bytes -= len(data)
	}
	if where.form == formHub {
		file.Path = reference + " (" + file.Path + ")"
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", file.Path, err)
	}
	r.known[where] = answer{file, err}
	return file, err
}

// locate parses the forms of a reference in docs/references.md.
func (r *Reader) locate(kind resolve.Kind, reference string) (place, error) {
	scheme, name, isAddress := strings.Cut(reference, "://")
	switch {
	case isAddress && (scheme == "http" || scheme == "https"):
		return place{form: formWeb, at: reference}, nil
	case isAddress:
		hub, known := r.Remote.Catalogs[scheme]
		if !known {
			return place{}, fault.Invalidf(reasonBadReference,
				"no hub is called %q: the ConfigMap's catalog-N-id name the hubs there are", scheme)
		}
		return onHub(hub, kind, name)
	case strings.Contains(reference, "/"):
		return place{form: formFile, at: path.Clean(strings.TrimLeft(reference, "/"))}, nil
	}
	return onHub(r.Remote.Hub, kind, reference)
}

func onHub(hub web.Hub, kind resolve.Kind, name string) (place, error) {
	kinds := map[resolve.Kind]string{resolve.KindTask: web.HubTask, resolve.KindPipeline: web.HubPipeline}
	address, err := hub.Address(kinds[kind], name)
	return place{form: formHub, at: address, hub: hub}, err
}

func (r *Reader) read(ctx context.Context, where place) ([]byte, error) {
	switch where.form {
	case formHub:
		return r.Web.Package(ctx, where.hub, where.at, r.policy())
	case formFile:
		return r.Files.File(ctx, r.SHA, where.at)
	}
	return r.readAddress(ctx, where.at)
}

func (r *Reader) policy() egress.Policy {
	return egress.Policy{Allowed: r.Remote.Allowed, Refused: r.Remote.Refused}
}

// readAddress reads a web address, with the event's credentials if it is the Git service's, else
// without credentials.
func (r *Reader) readAddress(ctx context.Context, address string) ([]byte, error) {
	data, why := r.Addresses.FileAt(ctx, address)
	if !fault.Is(why, fault.Ignored) {
		return data, why
	}
	policy := r.policy()
	policy.Trusted = egress.HostPort(r.Service)
	data, err := r.Web.Get(ctx, address, policy, web.MaxText)
	f := fault.Of(why)
	if err == nil || f.Reason == fault.ReasonOtherAddress {
		return data, err
	}
	err = fmt.Errorf("%w (and with the credentials of the repository: %s)", err, f.Message)
	if f.Reason == fault.ReasonNotFound && fault.Is(err, fault.Invalid) {
		// A fetch without credentials never shows what is private, so only the first answer counts.
		return nil, r.unlessMissing(address, err)
	}
	return nil, err
}

// unlessMissing returns a wait in place of the author's failure until it is accepted that nothing
// is at the address.
func (r *Reader) unlessMissing(address string, err error) error {
	if r.Missing == nil {
		return err
	}
	if again := r.Missing(address); again > 0 {
		return fault.Throttledf(fault.ReasonNotFound, again, "%s", fault.Of(err).Message)
	}
	return err
}

func shownAt(where place) string {
	if where.form == formFile {
		return where.at
	}
	return web.Show(where.at)
}

// show returns a reference for people, without the parts of an address that may be secret.
func show(reference string) string {
	if u, err := url.Parse(reference); err == nil && u.Host != "" {
		return web.Show(reference)
	}
	return fmt.Sprintf("%q", reference)
}
