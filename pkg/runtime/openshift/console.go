// SPDX-License-Identifier: Apache-2.0

// Package openshift finds the web console of an OpenShift cluster. The console's operator writes
// its URL to a ConfigMap that every authenticated account may get, and may not watch.
package openshift

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"knative.dev/pkg/logging"
)

const (
	// every is the time between two reads, and again is that time after a read that failed.
	every = 10 * time.Minute
	again = 30 * time.Second
	// atStart limits the first read, for which the start of the process waits.
	atStart = 2 * time.Second

	// apis is served on OpenShift only. Elsewhere the ConfigMap is not requested, so that no
	// request is forbidden.
	apis      = "/apis/config.openshift.io"
	namespace = "openshift-config-managed"
	name      = "console-public"
	key       = "consoleURL"
)

// Console is the cluster's console. The zero value is ready to use.
type Console struct {
	once sync.Once
	url  atomic.Value
}

// Find reads the URL, and then again every ten minutes until ctx ends. The first call waits at most
// two seconds for it. Find returns the method URL, or nil for a nil Console.
func (c *Console) Find(ctx context.Context, client kubernetes.Interface) func() string {
	if c == nil {
		return nil
	}
	c.once.Do(func() {
		first, cancel := context.WithTimeout(ctx, atStart)
		defer cancel()
		next := c.read(first, client)
		go c.refresh(ctx, client, next)
	})
	return c.URL
}

// URL returns the last known URL, "" if there is none.
func (c *Console) URL() string {
	url, _ := c.url.Load().(string)
	return url
}

func (c *Console) refresh(ctx context.Context, client kubernetes.Interface, next time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait.Jitter(next, 0.1)):
			next = c.read(ctx, client)
		}
	}
}

// read returns when to read again. After an error that says nothing about the console, the last URL
// stays.
func (c *Console) read(ctx context.Context, client kubernetes.Interface) time.Duration {
	url, err := read(ctx, client)
	if err != nil {
		if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			logging.FromContext(ctx).Warnw("Reading the URL of the OpenShift console; links stay as they are", "error", err)
		}
		return again
	}
	c.url.Store(url)
	return every
}

func read(ctx context.Context, client kubernetes.Interface) (string, error) {
	if err := client.Discovery().RESTClient().Get().AbsPath(apis).Do(ctx).Error(); err != nil {
		return "", ignoreAbsent(err)
	}
	cm, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", ignoreAbsent(err)
	}
	return cm.Data[key], nil
}

// ignoreAbsent returns nil if the API server says that there is no console, or none for this
// account.
func ignoreAbsent(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	return err
}
