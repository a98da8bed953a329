// SPDX-License-Identifier: Apache-2.0

// Package play plays scenarios to Pipelines-as-Code and to Plumbline. Each has a cluster of its
// own, because both watch the same kinds, and an App of its own on one forge. So both see the same
// commits, comments and people, and neither sees what the other does.
package play

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
	"github.com/plumbline-ci/plumbline/test/oracle/scenario"
)

const (
	// Application is what both call themselves in the names of checks.
	Application = "Pipelines as Code CI"

	organisation = "acme"
	// unlimited is more requests than any seed makes: an hour's limit would end it.
	unlimited = 1 << 30
)

// side is one of both.
type side struct {
	cluster   *cluster.Cluster
	proxy     *cluster.Proxy // between Pipelines-as-Code and the API server
	dynamic   dynamic.Interface
	plumbline versioned.Interface // knows the kind Repository, which both have
	app       forge.App
	// hook is where deliveries go, with header beside their own.
	hook   string
	header http.Header
}

// Stage is both sides, running.
type Stage struct {
	Dir       string // with the logs of everything
	forge     *forge.GitHub
	gateway   *gateway
	ours, pac side
	// system is Plumbline's namespace.
	system string
}

// Open starts everything, with the same defaults on both sides. Close ends what it started, also
// when it fails.
func Open(ctx context.Context, defaults scenario.Defaults, progress io.Writer) (s *Stage, err error) {
	s = &Stage{system: "plumbline"}
	if s.Dir, err = os.MkdirTemp("", "plumbline-oracle-"); err != nil {
		return s, err
	}
	built, err := buildOriginal(ctx, progress)
	if err != nil {
		return s, err
	}
	programs, err := installation.Build(ctx, s.Dir)
	if err != nil {
		return s, err
	}
	if err := s.host(); err != nil {
		return s, err
	}
	both, within := errgroup.WithContext(ctx)
	both.Go(func() error { return s.startOurs(within, programs, defaults) })
	both.Go(func() error { return s.startPaC(within, built, defaults) })
	return s, both.Wait()
}

// host starts the forge, with everybody who acts and the two Apps.
func (s *Stage) host() error {
	s.forge = forge.New(forge.Options{RateLimit: unlimited})
	if err := s.forge.Start(); err != nil {
		return err
	}
	var err error
	if s.gateway, err = newGateway(s.forge.URL()); err != nil {
		return err
	}
	for _, user := range []string{scenario.Writer, scenario.Triager, scenario.Reader, scenario.Stranger} {
		s.forge.AddUser(user)
	}
	s.forge.SetOrgOwner(organisation, scenario.Owner)
	s.forge.SetOrgMember(organisation, scenario.Member, true)
	s.ours.app = s.forge.CreateApp(7, "plumbline", "", "webhook-secret-of-plumbline")
	s.pac.app = s.forge.CreateApp(8, "original", "", "webhook-secret-of-the-original")
	s.forge.Install(s.ours.app.ID, organisation)
	s.forge.Install(s.pac.app.ID, organisation)
	return nil
}

// keysOf are the ConfigMap's keys for defaults, which both call the same.
func keysOf(d scenario.Defaults) map[string]string {
	return map[string]string{
		"enable-cancel-in-progress-on-pull-requests": strconv.FormatBool(d.Pulls),
		"enable-cancel-in-progress-on-push":          strconv.FormatBool(d.Pushes),
	}
}

func (s *Stage) startOurs(ctx context.Context, programs installation.Programs, defaults scenario.Defaults) error {
	if err := s.ours.begin(ctx, filepath.Join(s.Dir, "plumbline")); err != nil {
		return err
	}
	if err := installation.Define(ctx, s.ours.cluster); err != nil {
		return err
	}
	var settings [][3]string
	for key, value := range keysOf(defaults) {
		settings = append(settings, [3]string{"plumbline", key, value})
	}
	i, err := installation.New(ctx, installation.Options{
		Cluster: s.ours.cluster, Forge: s.forge, App: s.ours.app, Programs: programs, Namespace: s.system, Config: settings,
	})
	if err != nil {
		return err
	}
	receiver, _, err := i.Pair(ctx, false, nil, []string{"-late-reports=3s", "-close-window=5s"})
	if err == nil {
		s.ours.hook = receiver.URL
	}
	return err
}

func (s *Stage) startPaC(ctx context.Context, built original, defaults scenario.Defaults) (err error) {
	if err := s.pac.begin(ctx, filepath.Join(s.Dir, "original")); err != nil {
		return err
	}
	built.settings = keysOf(defaults)
	if s.pac.proxy, err = cluster.NewProxy(s.pac.cluster); err != nil {
		return err
	}
	s.pac.hook, _, err = installOriginal(ctx, s.pac.cluster, s.pac.proxy, built, s.pac.app, s.gateway.server.URL)
	// An Enterprise Server names its host. With the scheme Pipelines-as-Code takes it as it is,
	// without one it would want TLS.
	s.pac.header = http.Header{"X-Github-Enterprise-Host": {s.forge.URL()}}
	return err
}

// begin starts a cluster.
func (s *side) begin(ctx context.Context, dir string) (err error) {
	if s.cluster, err = cluster.Start(ctx, cluster.Options{Dir: dir}); err != nil {
		return err
	}
	config := rest.CopyConfig(s.cluster.RESTConfig())
	// the Repository of Pipelines-as-Code has no status, and would warn of ours with each scenario
	config.WarningHandler = rest.NoWarnings{}
	if s.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	s.plumbline, err = versioned.NewForConfig(config)
	return err
}

// Close ends everything. keep leaves the logs.
func (s *Stage) Close(keep bool) {
	for _, c := range []*cluster.Cluster{s.ours.cluster, s.pac.cluster} {
		if c != nil {
			c.Stop()
		}
	}
	if s.pac.proxy != nil {
		s.pac.proxy.Close()
	}
	if s.gateway != nil {
		s.gateway.server.CloseClientConnections()
		s.gateway.server.Close()
	}
	if s.forge != nil {
		_ = s.forge.Close()
	}
	if !keep {
		_ = os.RemoveAll(s.Dir)
	}
}

// namespaceOf is where a scenario's repository runs, on both sides.
func namespaceOf(s scenario.Scenario) string { return "ci-" + s.Name() }

// fullName is a scenario's repository at the forge.
func fullName(s scenario.Scenario) string { return fmt.Sprintf("%s/%s", organisation, s.Name()) }
