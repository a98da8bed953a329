// SPDX-License-Identifier: Apache-2.0

package play

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// perNamespace is how many Repositories a namespace has.
const perNamespace = 4

// Beside is Pipelines-as-Code and Plumbline in one cluster, with one App. Its webhook leads to
// Plumbline's receivers.
type Beside struct {
	Dir string

	forge   *forge.GitHub
	gateway *gateway
	// front is where Plumbline's receivers find Pipelines-as-Code.
	front   *httptest.Server
	cluster *cluster.Cluster
	proxy   *cluster.Proxy // between Pipelines-as-Code and the API server
	dynamic dynamic.Interface
	ours    *installation.Installation
	app     forge.App

	original  *cluster.Part // the controller of Pipelines-as-Code
	receivers []*installation.Process
	next      atomic.Int64
	repos     []string // by number
	mu        sync.Mutex
	pushes    map[string]push // by commit
	accepted  map[string]int  // how often Pipelines-as-Code has accepted each delivery
}

// push is one delivery.
type push struct{ repo, guid string }

// OpenBeside starts everything with so many Repositories, all served by Pipelines-as-Code. Close
// ends what it started, also when it fails.
func OpenBeside(ctx context.Context, repositories int, progress io.Writer) (b *Beside, err error) {
	b = &Beside{pushes: map[string]push{}, accepted: map[string]int{}}
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
	theirs, original, err := installOriginal(ctx, b.cluster, b.proxy, built, b.app, b.gateway.server.URL)
	if err != nil {
		return b, err
	}
	b.original = original
	if err := b.putFront(theirs); err != nil {
		return b, err
	}
	if err := b.install(ctx, programs, b.front.URL); err != nil {
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
			r.Out.Header.Set("X-Github-Enterprise-Host", b.forge.URL())
		},
		ModifyResponse: func(r *http.Response) error {
			if r.StatusCode == http.StatusAccepted {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.accepted[r.Request.Header.Get("X-GitHub-Delivery")]++
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
	if err := b.forge.Start(); err != nil {
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

// install installs Plumbline next to a running Pipelines-as-Code.
func (b *Beside) install(ctx context.Context, programs installation.Programs, theirs string) (err error) {
	if err := installation.Define(ctx, b.cluster); err != nil {
		return err
	}
	b.ours, err = installation.New(ctx, installation.Options{
		Cluster: b.cluster, Forge: b.forge, App: b.app, Programs: programs, Namespace: "plumbline",
		Config: [][3]string{
			{"plumbline", "pipelines-as-code-url", theirs}, {"plumbline", "serve-namespaces", "plumbline"},
		},
	})
	if err != nil {
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

// author pushes all commits.
const author = "owner"

// tekton is .tekton/build.yaml. Every third repository has a pipeline that fails.
const tekton = `apiVersion: tekton.dev/v1
kind: PipelineRun
metadata:
  name: build
  annotations:
    pipelinesascode.tekton.dev/on-event: "[push]"
    pipelinesascode.tekton.dev/on-target-branch: "[main]"
    ` + cluster.ExitCodeAnnotation + `: "%d"
spec:
  pipelineSpec:
    tasks:
      - {name: build, taskSpec: {steps: [{name: step, image: busybox, script: exit 0}]}}
`

// namespaceOfRepo returns the namespace of a repository's number.
func namespaceOfRepo(n int) string { return fmt.Sprintf("team-%02d", n/perNamespace) }

func nameOfRepo(n int) string { return fmt.Sprintf("app-%03d", n) }

// fails reports whether the pipeline of a repository fails.
func fails(repo string) bool { return strings.HasSuffix(repo, "0") }

// serve makes a repository and a Repository for it.
func (b *Beside) serve(ctx context.Context, n int) error {
	if n%perNamespace == 0 {
		if err := b.cluster.MakeNamespace(ctx, namespaceOfRepo(n)); err != nil {
			return err
		}
	}
	name := nameOfRepo(n)
	repo := b.forge.CreateRepo(organisation, name, forge.RepoOptions{})
	full, code := organisation+"/"+name, 0
	if fails(full) {
		code = 1
	}
	b.forge.Commit(full, "main", forge.Change{
		Files: map[string]string{".tekton/build.yaml": fmt.Sprintf(tekton, code)}, Message: "begin", Author: author,
	})
	_, err := b.ours.Serve(ctx, namespaceOfRepo(n), name, pacv1alpha1.RepositorySpec{URL: repo.HTMLURL})
	b.repos = append(b.repos, full)
	return err
}

// Namespaces returns those with Repositories.
func (b *Beside) Namespaces() (all []string) {
	for n := 0; n < len(b.repos); n += perNamespace {
		all = append(all, namespaceOfRepo(n))
	}
	return all
}

// Serve sets the namespaces that Plumbline serves, besides its own.
func (b *Beside) Serve(ctx context.Context, namespaces []string) error {
	patch := fmt.Sprintf(
		`{"data":{"serve-namespaces":%q}}`,
		strings.Join(append([]string{"plumbline"}, namespaces...), ","),
	)
	_, err := b.ours.Kube.CoreV1().ConfigMaps("plumbline").Patch(ctx, "plumbline", types.MergePatchType, []byte(patch),
		metav1.PatchOptions{})
	return err
}

// AwaitClaims waits until the Repositories of a namespace have claimed their URLs.
func (b *Beside) AwaitClaims(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, serving)
	defer cancel()
	return cluster.Poll(ctx, 100*time.Millisecond, func() error {
		for n, repo := range b.repos {
			if namespaceOfRepo(n) != namespace {
				continue
			}
			url, err := v1alpha1.CanonicalURL(b.forge.URL() + "/" + repo)
			if err != nil {
				return err
			}
			claim, err := b.ours.Plumbline.PlumblineV1alpha1().RepositoryClaims("plumbline").Get(ctx, v1alpha1.ClaimName(url),
				metav1.GetOptions{})
			if err != nil {
				return err
			}
			if claim.Status.ReleasedAt != nil {
				return fmt.Errorf("the claim of %s is still released", repo)
			}
		}
		return nil
	})
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
		_ = b.forge.Close()
	}
	if !keep {
		_ = os.RemoveAll(b.Dir)
	}
}
