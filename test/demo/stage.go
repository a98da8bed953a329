// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

const (
	replicas = 2
	tenant   = "team-a" // the namespace the runs are in
	poll     = 100 * time.Millisecond
)

// stage is everything the acts use.
type stage struct {
	cluster     *cluster.Cluster
	git         *gitService
	plumbline   *installation.Installation
	receivers   []*installation.Process
	controllers []*installation.Process
	begin       time.Time // of the act that plays
}

// open starts the cluster and the forge, installs config/ and starts the replicas. What it started
// is in the stage even when it fails.
func open(ctx context.Context, dir string, git *gitService) (*stage, error) {
	s := &stage{git: git}
	fmt.Println("Starting etcd, Kubernetes and Tekton on loopback ports")
	c, err := cluster.Start(ctx, cluster.Options{Dir: filepath.Join(dir, "cluster"), Progress: os.Stdout})
	if err != nil {
		return s, err
	}
	s.cluster = c
	fmt.Println("Building the receiver and the controller")
	programs, err := installation.Build(ctx, dir)
	if err != nil {
		return s, err
	}
	if err := s.git.forge.Start(); err != nil {
		return s, err
	}
	options := installation.Options{Cluster: c, Programs: programs, Namespace: "plumbline"}
	spec, secret := s.git.create(&options)
	fmt.Printf(
		"Installing config/ and starting %d receivers and %d controllers with the rights of their ServiceAccounts\n",
		replicas, replicas)
	if err := installation.Define(ctx, c); err != nil {
		return s, err
	}
	s.plumbline, err = installation.New(ctx, options)
	if err != nil {
		return s, err
	}
	if err := s.start(ctx); err != nil {
		return s, err
	}
	return s, s.connect(ctx, spec, secret)
}

func (s *stage) start(ctx context.Context) error {
	for range replicas {
		receiver, err := s.plumbline.Receiver(ctx, false)
		if err != nil {
			return err
		}
		controller, err := s.plumbline.Controller(ctx, true)
		if err != nil {
			return err
		}
		s.receivers, s.controllers = append(s.receivers, receiver), append(s.controllers, controller)
		if err := receiver.Start(ctx); err != nil {
			return err
		}
		if err := controller.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// connect creates the Repository, and the Secret that it names if it names one.
func (s *stage) connect(ctx context.Context, spec pacv1alpha1.RepositorySpec, secret map[string]string) error {
	namespace := []byte("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + tenant + "\n")
	if err := s.cluster.Apply(ctx, namespace); err != nil {
		return err
	}
	if secret != nil {
		_, err := s.plumbline.Kube.CoreV1().Secrets(tenant).Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: secretName}, StringData: secret,
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
	}
	_, err := s.plumbline.Plumbline.PipelinesascodeV1alpha1().Repositories(tenant).Create(ctx, &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "app"}, Spec: spec,
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return s.until(ctx, "the Repository is ready", func() (bool, error) {
		found, err := s.plumbline.Plumbline.PipelinesascodeV1alpha1().Repositories(tenant).Get(ctx, "app",
			metav1.GetOptions{})
		return err == nil && found.Status.GetCondition(pacv1alpha1.RepositoryURL).IsTrue(), err
	})
}

// close ends every process. It may be called more than once.
func (s *stage) close() {
	for _, p := range append(s.receivers, s.controllers...) {
		_ = p.Kill()
		if p.Proxy != nil {
			p.Proxy.Close()
		}
	}
	if s.cluster != nil {
		s.cluster.Stop()
	}
	_ = s.git.forge.Close()
}

// say prints one line of the timeline.
func (s *stage) say(format string, args ...any) {
	fmt.Printf("  %7.2fs  %s\n", time.Since(s.begin).Seconds(), fmt.Sprintf(format, args...))
}

// until polls up to a minute.
func (s *stage) until(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := cluster.Poll(ctx, poll, func() error {
		ok, err := done()
		if ok {
			return nil
		}
		return cmp.Or(err, errNotYet)
	})
	if err != nil {
		return fmt.Errorf("not within a minute: %s: %w", what, err)
	}
	return nil
}

// errNotYet is what is waited for without an error.
var errNotYet = errors.New("not yet")

// send commits a file with pipelines, delivers the event to one receiver and waits for its record.
func (s *stage) send(ctx context.Context, file string, pipelines ...string) (
	sha string, event *v1alpha1.GitEvent, err error,
) {
	files := map[string]string{file: strings.Join(pipelines, "---\n")}
	for _, other := range []string{".tekton/a.yaml", ".tekton/b.yaml", ".tekton/c.yaml"} {
		if other != file {
			files[other] = forge.Deleted
		}
	}
	sha, status, body, err := s.git.change(ctx, s.receivers[0].URL, forge.Change{Files: files, Message: "demo: " + file})
	if err := accepted(s.git.event, status, body, err); err != nil {
		return sha, nil, err
	}
	s.say("%s at %.8s delivered: the receiver answers 202", s.git.event, sha)
	err = s.until(ctx, "the GitEvent is readable", func() (bool, error) {
		list, err := s.plumbline.Plumbline.PlumblineV1alpha1().GitEvents("plumbline").List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			if list.Items[i].Spec.SHA == sha {
				event = &list.Items[i]
			}
		}
		return event != nil, nil
	})
	if err == nil {
		s.say("recorded as GitEvent %s", event.Name)
	}
	return sha, event, err
}

// accepted returns an error unless the receiver answered a delivery with 202.
func accepted(what string, status int, body []byte, err error) error {
	if err != nil {
		return fmt.Errorf("delivering the %s: %w", what, err)
	}
	if status != http.StatusAccepted {
		return fmt.Errorf("the delivery of the %s was answered %d %s", what, status, body)
	}
	return nil
}

// lookAround tells what can be looked at while everything runs.
func (s *stage) lookAround() {
	fmt.Printf(`
Everything is left running (KEEP=1). In another terminal:

  export KUBECONFIG=%s
  kubectl -n %s get pipelineruns,repositories
  kubectl -n plumbline get gitevents,repositoryclaims
  ls %s

The forge is %s. Ctrl-C stops and removes it all.
`, s.cluster.KubeconfigPath(), tenant, filepath.Join(s.cluster.Dir(), "logs"), s.git.forge.URL())
}
