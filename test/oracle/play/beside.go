// SPDX-License-Identifier: Apache-2.0

package play

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// perNamespace is how many Repositories a namespace has.
const perNamespace = 4

// Beside is Pipelines-as-Code and Plumbline in one cluster, with one App. Its webhook leads to
// Plumbline's receivers.
type Beside struct {
	Dir string

	forge   *forge.GitHub
	lab     *gitlab.GitLab
	gateway *gateway
	// front is where Plumbline's receivers find Pipelines-as-Code.
	front   *httptest.Server
	cluster *cluster.Cluster
	proxy   *cluster.Proxy // between Pipelines-as-Code and the API server
	dynamic dynamic.Interface
	ours    *installation.Installation
	app     forge.App
	plumb   string // the command

	controller, watcher *cluster.Part // of Pipelines-as-Code
	receivers           []*installation.Process
	next                atomic.Int64
	repos               []repository // by number
	pulls               []pull
	// finished is true after plumb migrate finish: since then PipelineRuns of Plumbline have a
	// state.
	finished bool

	mu       sync.Mutex
	commits  map[string]*commit // by their SHAs
	accepted map[string]int     // how often Pipelines-as-Code has accepted each delivery
	refused  []delivery         // of GitLab
}

// repository is one at the forge, or a project of GitLab.
type repository struct {
	name  string
	onLab bool
}

// commit is one whose deliveries each start one PipelineRun of a pipeline.
type commit struct {
	repo       repository
	pipeline   string
	deliveries []string // their ids
}

// pull is an open pull request or merge request.
type pull struct {
	repo   repository
	sha    string
	number int
}

// OpenBeside starts everything with so many Repositories, all served by Pipelines-as-Code. Close
// ends what it started, also when it fails.
func OpenBeside(ctx context.Context, repositories int, progress io.Writer) (b *Beside, err error) {
	b = &Beside{commits: map[string]*commit{}, accepted: map[string]int{}}
	if b.Dir, err = os.MkdirTemp("", "plumbline-migration-"); err != nil {
		return b, err
	}
	built, err := buildOriginal(ctx, progress)
	if err != nil {
		return b, err
	}
	programs, err := installation.Build(ctx, b.Dir)
	if err != nil {
		return b, err
	}
	if err := installation.Compile(ctx, b.Dir, "./cmd/plumb"); err != nil {
		return b, err
	}
	b.plumb = filepath.Join(b.Dir, "plumb")
	if err := b.host(); err != nil {
		return b, err
	}
	if b.cluster, err = cluster.Start(ctx, cluster.Options{Dir: filepath.Join(b.Dir, "cluster")}); err != nil {
		return b, err
	}
	if b.dynamic, err = dynamic.NewForConfig(quietly(b.cluster.RESTConfig())); err != nil {
		return b, err
	}
	if b.proxy, err = cluster.NewProxy(b.cluster); err != nil {
		return b, err
	}
	theirs, parts, err := installOriginal(ctx, b.cluster, b.proxy, built, b.app, b.gateway.server.URL)
	if err != nil {
		return b, err
	}
	b.controller, b.watcher = parts[controller], parts[watcher]
	if err := b.putFront(theirs); err != nil {
		return b, err
	}
	if err := b.install(ctx, programs); err != nil {
		return b, err
	}
	for n := range repositories {
		if err := b.serve(ctx, n); err != nil {
			return b, fmt.Errorf("making repository %d: %w", n, err)
		}
	}
	return b, nil
}

// putFront puts a server in front of Pipelines-as-Code that says where the forge is, and counts
// what was accepted. An Enterprise Server names its host, and Pipelines-as-Code takes a scheme with
// it, without which it would use TLS.
func (b *Beside) putFront(url string) error {
	to, err := neturl.Parse(url)
	if err != nil {
		return err
	}
	b.front = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			if r.In.Header.Get("X-Github-Event") != "" {
				r.Out.Header.Set("X-Github-Enterprise-Host", b.forge.URL())
			}
		},
		ModifyResponse: func(r *http.Response) error {
			if r.StatusCode == http.StatusAccepted {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.accepted[cmp.Or(r.Request.Header.Get("X-GitHub-Delivery"), r.Request.Header.Get("Idempotency-Key"))]++
			}
			return nil
		},
		// The connection ends without an answer, as if nothing listened.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	})
	return nil
}

// quietly returns a configuration whose clients do not print warnings.
func quietly(config *rest.Config) *rest.Config {
	config.WarningHandler = rest.NoWarnings{}
	config.QPS, config.Burst = 100, 200
	return config
}

func (b *Beside) host() (err error) {
	b.forge = forge.New(forge.Options{RateLimit: unlimited})
	b.lab = gitlab.New(gitlab.Options{RateLimit: unlimited})
	if err := errors.Join(b.forge.Start(), b.lab.Start()); err != nil {
		return err
	}
	if b.gateway, err = newGateway(b.forge.URL()); err != nil {
		return err
	}
	b.forge.SetOrgOwner(organisation, author)
	b.app = b.forge.CreateApp(7, "ci", "", "webhook-secret-of-the-app")
	b.forge.Install(b.app.ID, organisation)
	return nil
}

// install installs Plumbline next to a running Pipelines-as-Code, and starts the migration.
func (b *Beside) install(ctx context.Context, programs installation.Programs) (err error) {
	if err := installation.Define(ctx, b.cluster); err != nil {
		return err
	}
	b.ours, err = installation.New(ctx, installation.Options{
		Cluster: b.cluster, Forge: b.forge, App: b.app, Programs: programs, Namespace: "plumbline",
	})
	if err != nil {
		return err
	}
	for _, name := range []string{controller, watcher} {
		if err := b.deploy(ctx, name); err != nil {
			return err
		}
	}
	if _, err := b.Migrate(ctx, "start", "--pac-url="+b.front.URL); err != nil {
		return err
	}
	for range 2 {
		receiver, err := b.ours.Receiver(ctx, false)
		if err != nil {
			return err
		}
		if err := receiver.Start(ctx); err != nil {
			return err
		}
		b.receivers = append(b.receivers, receiver)
	}
	controller, err := b.ours.Controller(ctx, false, "-late-reports=3s", "-close-window=5s")
	if err != nil {
		return err
	}
	return controller.Start(ctx)
}

// deploy creates a Deployment of Pipelines-as-Code, in which plumb sees that it runs. Nothing
// creates its pods: our processes stand in.
func (b *Beside) deploy(ctx context.Context, name string) error {
	labels := map[string]string{"app": name}
	_, err := b.ours.Kube.AppsV1().Deployments(pacNamespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "it", Image: "pac"}}},
			},
		},
	}, metav1.CreateOptions{})
	return err
}

// Close ends everything. keep leaves the logs.
func (b *Beside) Close(keep bool) {
	if b.cluster != nil {
		b.cluster.Stop()
	}
	if b.proxy != nil {
		b.proxy.Close()
	}
	if b.front != nil {
		b.front.CloseClientConnections()
		b.front.Close()
	}
	if b.gateway != nil {
		b.gateway.server.CloseClientConnections()
		b.gateway.server.Close()
	}
	if b.forge != nil {
		_ = errors.Join(b.forge.Close(), b.lab.Close())
	}
	if !keep {
		_ = os.RemoveAll(b.Dir)
	}
}
