// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"fmt"
	"log"
	"os"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/plan"
)

// disk is a Git service with one commit: the files of a directory. A push without filters needs
// nothing else.
type disk struct{ plan.Source }

func (disk) Head(_ context.Context, e *v1alpha1.GitEventSpec) (git.Head, error) {
	return git.Head{SHA: e.SHA}, nil
}

func (disk) Files(_ context.Context, _, dir string) ([]git.File, error) {
	data, err := os.ReadFile("testdata/" + dir + "/hello.yaml")
	return []git.File{{Path: dir + "/hello.yaml", Data: data}}, err
}

// The runs that a push would start, with files from disk.
func ExampleMake() {
	settings := config.Default()
	settings.SkipPushOfPulls = false
	event := plan.Event{Name: "push-1", Spec: &v1alpha1.GitEventSpec{
		Trigger: v1alpha1.TriggerPush, EventType: "push", BaseRef: "refs/heads/main", SHA: "c0ffee",
	}}
	made, err := plan.Make(context.Background(),
		plan.Input{Event: event, Repository: &pacv1alpha1.Repository{}, Config: settings}, plan.Sources{Source: disk{}})
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range made.Decisions {
		fmt.Printf("%s: %s\n", d.Pipeline, d.Reason)
	}
	for _, run := range made.Runs {
		manifest, err := run.PipelineRun()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s starts %s\n", run.Name, manifest.Spec.PipelineSpec.Tasks[0].TaskSpec.Steps[0].Script)
	}
	// Output:
	// hello: selected: on-event includes push; on-target-branch [main] matches main
	// bye: on-target-branch [release-*] does not match main
	// hello-7a77j3f6bgyxi starts echo c0ffee
}
