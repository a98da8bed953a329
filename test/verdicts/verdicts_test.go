// SPDX-License-Identifier: Apache-2.0

package verdicts

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tekton "github.com/tektoncd/pipeline/pkg/client/clientset/versioned"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"knative.dev/pkg/apis"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

var update = flag.Bool("update", false, "play all scenarios and write the corpus")

// folder is the corpus.
const folder = "../../pkg/status/testdata/corpus"

// limit bounds one scenario. Tekton waits a minute for a resolver that does not answer.
const limit = 3 * time.Minute

var shared struct {
	*cluster.Cluster
	tekton tekton.Interface
	core   kubernetes.Interface
}

func TestMain(m *testing.M) {
	os.Exit(cluster.Suite{Name: "verdicts", Limit: 5 * time.Minute, Prepare: prepare}.Run(m))
}

func prepare(_ context.Context, c *cluster.Cluster, _ string) (err error) {
	shared.Cluster = c
	if shared.tekton, err = tekton.NewForConfig(c.RESTConfig()); err != nil {
		return err
	}
	shared.core, err = kubernetes.NewForConfig(c.RESTConfig())
	return err
}

// The corpus that pkg/status is tested with is what this Tekton writes. In short mode, a sample of
// it is compared.
func TestCorpusIsWhatTektonWrites(t *testing.T) {
	for _, s := range scenarios() {
		if !*update && testing.Short() && !slices.Contains(sample(), s.name) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			got := s.play(t)
			path := filepath.Join(folder, s.name+".yaml")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(facts(string(want)), facts(got)); diff != "" {
				t.Errorf("Tekton writes something else than %s: go test ./test/verdicts -update (-want +got):\n%s", path, diff)
			}
		})
	}
}

// facts are the lines of a status from which a verdict is made.
func facts(file string) (lines []string) {
	kept := regexp.MustCompile(`^[\s-]*(reason|message|status|terminationReason|exitCode|name|Previous status): ?`)
	for line := range strings.SplitSeq(file, "\n") {
		if kept.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// play makes the PipelineRun fail and returns it with its TaskRuns.
func (s scenario) play(t *testing.T) string {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	namespace := shared.Namespace(t, "verdicts")
	if err := shared.Apply(ctx, fmt.Appendf(nil, needed, namespace)); err != nil {
		t.Fatal(err)
	}
	if s.name == "pod-security" {
		patch := `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"baseline"}}}`
		if _, err := shared.core.CoreV1().Namespaces().Patch(ctx, namespace, "application/merge-patch+json", []byte(patch),
			metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	pr := &pipelinev1.PipelineRun{}
	manifest := fmt.Sprintf(
		"metadata: {name: build, annotations: {%s: 'true'}}\nspec: %s",
		cluster.ByHandAnnotation,
		s.spec,
	)
	if err := yaml.UnmarshalStrict([]byte(manifest), pr); err != nil {
		t.Fatal(err)
	}
	if _, err := shared.tekton.TektonV1().PipelineRuns(namespace).Create(ctx, pr, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	done := map[string]bool{} // pods that have their status
	for _, a := range s.acts {
		if err := a.play(ctx, namespace, done); err != nil {
			t.Fatalf("task %s: %v", a.task, err)
		}
	}
	if _, err := shared.WaitRun(ctx, namespace, "build"); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Poll(ctx, 50*time.Millisecond, func() error { return allEnded(ctx, namespace) }); err != nil {
		t.Fatal(err)
	}
	return recorded(ctx, t, namespace)
}

// allEnded returns an error while a TaskRun runs: Tekton ends a PipelineRun that timed out before
// its TaskRuns.
func allEnded(ctx context.Context, namespace string) error {
	list, err := shared.tekton.TektonV1().TaskRuns(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, taskRun := range list.Items {
		if !taskRun.IsDone() {
			return errors.New(taskRun.Name + " has not ended")
		}
	}
	return nil
}

// play writes the status of the task's next pod, and waits for the end of its TaskRun in an earlier
// second than that of the next act.
func (a act) play(ctx context.Context, namespace string, done map[string]bool) error {
	err := cluster.Poll(ctx, 50*time.Millisecond, func() error {
		pods, err := shared.core.CoreV1().Pods(namespace).List(ctx,
			metav1.ListOptions{LabelSelector: "tekton.dev/pipelineTask=" + a.task})
		if err != nil {
			return err
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			if done[pod.Name] {
				continue
			}
			a.do(pod)
			if _, err := shared.core.CoreV1().Pods(namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
				return err
			}
			done[pod.Name] = true
			return nil
		}
		return errors.New("it has no new pod")
	})
	if err != nil || a.open {
		return err
	}
	return cluster.Poll(ctx, 50*time.Millisecond, func() error { return ended(ctx, namespace, a.task) })
}

func ended(ctx context.Context, namespace, task string) error {
	list, err := shared.tekton.TektonV1().TaskRuns(namespace).List(ctx,
		metav1.ListOptions{LabelSelector: "tekton.dev/pipelineTask=" + task})
	if err != nil {
		return err
	}
	for _, taskRun := range list.Items {
		// a TaskRun that ends with CreateContainerConfigError gets no completionTime
		succeeded := taskRun.Status.GetCondition(apis.ConditionSucceeded)
		if !taskRun.IsDone() || !time.Now().After(succeeded.LastTransitionTime.Inner.Add(time.Second)) {
			return errors.New("its TaskRun has not ended")
		}
	}
	return nil
}

// recorded returns the PipelineRun and its TaskRuns as YAML, without what is different each time.
func recorded(ctx context.Context, t *testing.T, namespace string) string {
	pr, err := shared.tekton.TektonV1().PipelineRuns(namespace).Get(ctx, "build", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := shared.tekton.TektonV1().TaskRuns(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pr.ManagedFields, pr.TypeMeta = nil, metav1.TypeMeta{APIVersion: "tekton.dev/v1", Kind: "PipelineRun"}
	pr.Annotations, pr.Spec, pr.Status.PipelineSpec, pr.Status.Provenance = nil, pipelinev1.PipelineRunSpec{}, nil, nil
	documents := []string{render(t, pr)}
	for _, tr := range list.Items {
		tr.ManagedFields, tr.TypeMeta = nil, metav1.TypeMeta{APIVersion: "tekton.dev/v1", Kind: "TaskRun"}
		tr.Annotations, tr.OwnerReferences, tr.Status.Provenance = nil, nil, nil
		documents = append(documents, render(t, &tr))
	}
	return "# Written by Tekton; the test played the kubelet: go test ./test/verdicts -update\n" +
		steadied(strings.ReplaceAll(strings.Join(documents, "---\n"), namespace, "ci"))
}

func render(t *testing.T, object any) string {
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// steadied replaces times and UIDs by others of the same order.
func steadied(file string) string {
	uid := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	seen := map[string]int{}
	file = uid.ReplaceAllStringFunc(file, func(id string) string {
		if _, found := seen[id]; !found {
			seen[id] = len(seen) + 1
		}
		return fmt.Sprintf("00000000-0000-0000-0000-%012d", seen[id])
	})
	file = regexp.MustCompile(`(?m)^\s*resourceVersion: .*\n`).ReplaceAllString(file, "")
	at := regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	times := slices.Compact(slices.Sorted(slices.Values(at.FindAllString(file, -1))))
	began := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	return at.ReplaceAllStringFunc(file, func(one string) string {
		return began.Add(time.Duration(slices.Index(times, one)) * time.Second).Format(time.RFC3339)
	})
}
