// SPDX-License-Identifier: Apache-2.0

package play

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/test/cluster"
)

// Migrate runs plumb migrate and returns what it prints.
func (b *Beside) Migrate(ctx context.Context, args ...string) (string, error) {
	args = append(append([]string{"migrate"}, args...), "--kubeconfig="+b.cluster.KubeconfigPath())
	out, err := exec.CommandContext(ctx, b.plumb, args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("plumb %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// GoBackAfterFinish ends the migration, stops Pipelines-as-Code, and goes back as the section "Go
// back" of docs/migration.md says. Some namespaces stay at Plumbline. meanwhile is called when
// Plumbline serves all namespaces alone.
func (b *Beside) GoBackAfterFinish(ctx context.Context, stay []string, meanwhile func()) error {
	if _, err := b.Migrate(ctx, "namespace", "--all", "--wait"); err != nil {
		return err
	}
	if said, err := b.Migrate(ctx, "finish", "--wait"); err == nil || !strings.Contains(said, "stop it") {
		return fmt.Errorf("plumb migrate finish beside Pipelines-as-Code ends with %w\n%s", err, said)
	}
	if err := b.stop(ctx); err != nil {
		return err
	}
	if _, err := b.Migrate(ctx, "finish"); err != nil {
		return err
	}
	b.finished = true
	meanwhile()
	return b.goBack(ctx, stay)
}

// stop stops Pipelines-as-Code.
func (b *Beside) stop(ctx context.Context) error {
	return errors.Join(b.scale(ctx, 0), b.controller.Kill(), b.watcher.Kill())
}

func (b *Beside) scale(ctx context.Context, replicas int) error {
	for _, name := range []string{controller, watcher} {
		patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
		if _, err := b.ours.Kube.AppsV1().Deployments(pacNamespace).
			Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// goBack does the steps of the documentation: Plumbline serves all namespaces until
// Pipelines-as-Code runs, and then the others return.
func (b *Beside) goBack(ctx context.Context, stay []string) error {
	patch := fmt.Sprintf(`{"data":{"pipelines-as-code-url":%q,"serve-namespaces":%q}}`, b.front.URL,
		strings.Join(append([]string{"plumbline"}, b.Namespaces()...), ","))
	if _, err := b.ours.Kube.CoreV1().ConfigMaps("plumbline").
		Patch(ctx, "plumbline", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return err
	}
	recorded, err := b.unsettled(ctx)
	if err != nil {
		return err
	}
	if err := b.settle(ctx, recorded); err != nil {
		return err
	}
	if err := b.removeState(ctx); err != nil {
		return err
	}
	if err := errors.Join(b.scale(ctx, 1), b.controller.Start(ctx), b.watcher.Start(ctx)); err != nil {
		return err
	}
	if _, err := b.Migrate(ctx, "start", "--pac-url="+b.front.URL); err != nil {
		return err
	}
	others := slices.DeleteFunc(b.Namespaces(), func(name string) bool { return slices.Contains(stay, name) })
	_, err = b.Migrate(ctx, append([]string{"namespace", "--back"}, others...)...)
	return err
}

// unsettled returns the names of the GitEvents that have not settled.
func (b *Beside) unsettled(ctx context.Context) (names map[string]bool, err error) {
	list, err := b.ours.Plumbline.PlumblineV1alpha1().GitEvents("plumbline").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	names = map[string]bool{}
	for i := range list.Items {
		if !list.Items[i].Settled() {
			names[list.Items[i].Name] = true
		}
	}
	return names, nil
}

// settle waits until the GitEvents have settled.
func (b *Beside) settle(ctx context.Context, recorded map[string]bool) error {
	ctx, cancel := context.WithTimeout(ctx, settled)
	defer cancel()
	return cluster.Poll(ctx, time.Second, func() error {
		now, err := b.unsettled(ctx)
		if err != nil {
			return err
		}
		for name := range recorded {
			if now[name] {
				return fmt.Errorf("GitEvent %s has not settled", name)
			}
		}
		return nil
	})
}

// removeState removes the annotation by which the watcher would adopt PipelineRuns of Plumbline.
func (b *Beside) removeState(ctx context.Context) error {
	runs := b.dynamic.Resource(cluster.PipelineRuns())
	list, err := runs.List(ctx, metav1.ListOptions{
		LabelSelector: plumbline.InstallationLabel + "," + pipelinesascode.State,
	})
	if err != nil {
		return err
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, pipelinesascode.State)
	for _, run := range list.Items {
		if _, err := runs.Namespace(run.GetNamespace()).
			Patch(ctx, run.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return nil
}
