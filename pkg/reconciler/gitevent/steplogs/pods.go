// SPDX-License-Identifier: Apache-2.0

package steplogs

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tektoncd/pipeline/pkg/apis/pipeline"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// readPods finds out which Secrets the pods of the run's TaskRuns had. If a pod no longer exists,
// its TaskRun says which Secrets it had, except those that Tekton added for the ServiceAccount.
// Another pod with that ServiceAccount shows these. Without one, no log is shown.
func (r *Reader) readPods(ctx context.Context, found *run) error {
	options := metav1.ListOptions{LabelSelector: pipeline.PipelineRunLabelKey + "=" + found.Name, Limit: podPage}
	for left := maxPods; ; {
		list, err := r.Kube.Pods(found.Namespace).List(ctx, options)
		if err != nil {
			return err
		}
		for i := range list.Items {
			found.addPod(&list.Items[i])
		}
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
		if left -= len(list.Items); left <= 0 {
			return &hiddenError{missing: v1alpha1.MissingLog{Reason: v1alpha1.LogSecrets}}
		}
	}
	found.refs.add(found.Secret, new(true))
	byPod := func(a, b *taskRun) int { return cmp.Compare(a.pod, b.pod) } // of several the log always names the same one
	for _, known := range slices.SortedFunc(maps.Values(found.taskRuns), byPod) {
		if _, exists := found.pods[known.pod]; exists {
			continue
		}
		found.sees(known.refs, known.created)
		if len(found.pods) > 0 && (!known.complete || !found.accounts[known.account]) {
			return &hiddenError{missing: v1alpha1.MissingLog{Reason: v1alpha1.LogSecret, Object: "pod " + known.pod}}
		}
	}
	return nil
}

func (f *run) addPod(pod *corev1.Pod) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return
	}
	known := f.taskRuns[owner.UID]
	if known == nil {
		return
	}
	seen := refs{}
	seen.addPod(&pod.Spec)
	f.sees(seen, pod.CreationTimestamp.Time)
	f.pods[pod.Name] = owner.UID
	if pod.Name == known.pod {
		f.accounts[known.account] = true
	}
}

// sees adds the Secrets of a pod that was created at a time.
func (f *run) sees(seen refs, created time.Time) {
	f.refs.addAll(seen)
	for name := range seen {
		if before, known := f.since[name]; !known || created.Before(before) {
			f.since[name] = created
		}
	}
}

// secrets returns the values of the Secrets that the run could see. It fails if one of them cannot
// be read: then no log is shown. Of several that cannot be read it names the first by name, so that
// the text of a check is the same after each attempt.
func (r *Reader) secrets(ctx context.Context, found *run) (values []string, err error) {
	if len(found.refs) > maxRefs {
		return nil, &hiddenError{missing: v1alpha1.MissingLog{Reason: v1alpha1.LogSecrets}}
	}
	for _, name := range slices.Sorted(maps.Keys(found.refs)) {
		secret, err := r.Kube.Secrets(found.Namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) && found.refs[name] {
			continue
		}
		if err != nil {
			final := apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
			about := v1alpha1.MissingLog{Reason: v1alpha1.LogSecret, Object: "Secret " + name}
			return nil, &hiddenError{missing: about, again: !final}
		}
		if name != found.Secret && changedAfter(found.since[name], secret) { // the token of the run is renewed
			about := v1alpha1.MissingLog{Reason: v1alpha1.LogSecret, Object: "Secret " + name + changed}
			return nil, &hiddenError{missing: about}
		}
		for _, value := range secret.Data {
			values = append(values, string(value))
		}
	}
	if size(values)+size(found.Values) > maxSecrets {
		return nil, &hiddenError{missing: v1alpha1.MissingLog{Reason: v1alpha1.LogSecrets}}
	}
	return values, nil
}
