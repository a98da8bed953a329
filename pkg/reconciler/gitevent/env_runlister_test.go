// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"cmp"
	"context"
	"runtime"
	"slices"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/metadata"
)

// runLister lists the world's PipelineRuns without their specs, two at a time whatever it is asked
// for.
type runLister struct {
	metadata.ResourceInterface
	w *env
}

func (l runLister) Namespace(string) metadata.ResourceInterface { return l }

func (l runLister) List(_ context.Context, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	if o.Limit <= 0 || o.Limit > 50 { // each may have a mebibyte of metadata
		l.w.t.Errorf("a list of %d objects", o.Limit)
	}
	switch call := l.w.called("list pipelineruns"); {
	case call.kill:
		runtime.Goexit()
	case call.err != nil:
		return nil, call.err
	}
	selector, err := labels.Parse(o.LabelSelector)
	if err != nil {
		return nil, err
	}
	all := l.w.runs()
	slices.SortFunc(all, func(a, b pipelinev1.PipelineRun) int { return cmp.Compare(a.Name, b.Name) })
	list := &metav1.PartialObjectMetadataList{}
	for _, run := range all {
		if run.Name <= o.Continue || !selector.Matches(labels.Set(run.Labels)) {
			continue
		}
		if len(list.Items) == 2 {
			list.Continue = list.Items[1].Name
			break
		}
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: run.ObjectMeta})
	}
	return list, nil
}
