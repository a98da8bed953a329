// SPDX-License-Identifier: Apache-2.0

// Package migrate moves a cluster from Pipelines-as-Code (PaC) to Plumbline, one namespace at a
// time, and back. Each verb can be killed at any point and called again.
package migrate

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	"github.com/plumbline-ci/plumbline/pkg/config"
)

// The keys of ConfigMap plumbline that a migration writes.
const (
	keyPaC        = "pipelines-as-code-url"
	keyNamespaces = "serve-namespaces"
)

// Migration is what all verbs know.
type Migration struct {
	Cluster *kube.Cluster
	// Namespace is Plumbline's own. ConfigMap is the name of its settings.
	Namespace, ConfigMap string
	// Timeout is how long to wait. Poll is how often to read.
	Timeout, Poll time.Duration
	Out           io.Writer
}

func (m *Migration) say(format string, args ...any) {
	_, _ = fmt.Fprintf(m.Out, format+"\n", args...) // an error of that has no reader
}

func (m *Migration) until(ctx context.Context, done wait.ConditionWithContextFunc) error {
	return kube.Polling{Every: m.Poll, Timeout: m.Timeout}.Until(ctx, m.say, done)
}

// settings returns ConfigMap plumbline.
func (m *Migration) settings(ctx context.Context) (*corev1.ConfigMap, error) {
	cm, err := m.Cluster.Kube.CoreV1().ConfigMaps(m.Namespace).Get(ctx, m.ConfigMap, metav1.GetOptions{})
	if err != nil {
		return nil, kube.Failed(fmt.Sprintf("reading ConfigMap %s/%s", m.Namespace, m.ConfigMap), err)
	}
	return cm, nil
}

// change writes keys of ConfigMap plumbline in one patch; nil removes a key. how returns them from
// the ConfigMap as it is, and is called again if another client has changed it meanwhile. It
// reports whether something was changed.
func (m *Migration) change(
	ctx context.Context, how func(*corev1.ConfigMap) (map[string]*string, error),
) (changed bool, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		cm, err := m.settings(ctx)
		if err != nil {
			return err
		}
		keys, err := how(cm)
		if changed = len(keys) > 0; err != nil || !changed {
			return err
		}
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]string{"resourceVersion": cm.ResourceVersion}, "data": keys,
		})
		if err != nil {
			return err
		}
		_, err = m.Cluster.Kube.CoreV1().ConfigMaps(m.Namespace).
			Patch(ctx, m.ConfigMap, types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			return kube.Failed(fmt.Sprintf("changing ConfigMap %s/%s", m.Namespace, m.ConfigMap), err)
		}
		return nil
	})
	return changed && err == nil, err
}

// receiverURL returns where webhooks lead, for a sentence.
func receiverURL(cm *corev1.ConfigMap) string {
	settings, _ := config.New(cm.Data)
	if settings.WebhookURL == "" {
		return "the URL that leads to Service plumbline-receiver"
	}
	return settings.WebhookURL + "/"
}
