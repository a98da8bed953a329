// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// Each check that cannot be concluded has a reason that says what to do, and the others are
// concluded.
func TestFinishSaysWhyChecksStayOpen(t *testing.T) {
	for name, test := range map[string]struct {
		change func(l *left)
		want   string
	}{
		"the Secret of a token is gone": {func(l *left) {
			_ = l.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("secrets"), team, "lab")
		}, "secret team-a/lab does not exist"},
		"a refused token": {func(l *left) {
			l.lab.Inject(gitlab.Fault{Do: gitlab.Revoked401()})
		}, "Token was revoked"},
		"a rate limit": {func(l *left) {
			l.lab.Inject(gitlab.Fault{Do: gitlab.RateLimited(time.Now(), time.Now().Add(time.Minute))})
		}, "429"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLeft(t)
			l.create(ended(l.labRun("lab"), "True", "Succeeded"), ended(l.run("good", "started"), "True", "Succeeded"))
			test.change(l)
			err := l.finish()
			if err == nil || !strings.Contains(err.Error(), "1 checks could not be concluded") ||
				l.conclusionOf("good") != "success" {
				t.Error(err)
			}
			l.says("The check of PipelineRun team-a/lab may be open: ", test.want)
		})
	}
}

// While it waits, the command reads the runs that it waits for, and not all runs of the cluster
// each second.
func TestFinishListsRunsOnceWhileItWaits(t *testing.T) {
	l := newLeft(t)
	l.create(l.run("running", "started"))
	lists, gets := 0, 0
	fake, _ := l.Cluster.Dynamic.(*dynamicfake.FakeDynamicClient)
	fake.PrependReactor("list", "pipelineruns", func(clienttesting.Action) (bool, runtime.Object, error) {
		lists++
		return false, nil, nil
	})
	fake.PrependReactor("get", "pipelineruns", func(clienttesting.Action) (bool, runtime.Object, error) {
		gets++
		return false, nil, nil
	})
	err := l.finish(func(f *Finish) { f.Wait = true })
	if err == nil || !strings.Contains(err.Error(), "1 runs of Pipelines-as-Code have not finished") {
		t.Error(err)
	}
	if lists != 1 || gets < 2 {
		t.Errorf("%d lists and %d reads", lists, gets)
	}
}

// --wait ends when the listed runs have finished, and others that Pipelines-as-Code has started
// meanwhile.
func TestNamespaceWaitsForRuns(t *testing.T) {
	e, gets := newMoving(t, app(team)), 0
	e.create(golden(t, "first", map[string]string{"STATE": "started"}))
	finished := untyped(t, ended(golden(t, "first", nil), "True", "Succeeded"))
	second := untyped(t, golden(t, "second", map[string]string{"STATE": "started"}))
	fake, _ := e.Cluster.Dynamic.(*dynamicfake.FakeDynamicClient)
	fake.PrependReactor("get", "pipelineruns", func(clienttesting.Action) (bool, runtime.Object, error) {
		var err error
		switch gets++; gets {
		case 2:
			err = errors.Join(fake.Tracker().Add(second), fake.Tracker().Update(runs(), finished, team))
		case 4:
			err = fake.Tracker().Delete(runs(), team, "second")
		}
		return err != nil, nil, err
	})
	if err := e.move(func(n *Namespaces) { n.Wait = true }, team); err != nil || gets < 4 {
		t.Errorf("%v after %d reads", err, gets)
	}
	e.says("team-a/first: pending", "All runs of Pipelines-as-Code have finished.")
}

// Before plumb migrate start, turning PaC off would lose the deliveries of all namespaces. After
// plumb migrate finish, an operator that has installed PaC again is to be turned off again.
func TestOperatorRefusesBeforeStart(t *testing.T) {
	e := newEnv(t, app("team-a"))
	o := &Operator{Migration: e.Migration}
	err := o.check(e.Context(), &operated{enabled: true})
	if err == nil || !strings.Contains(err.Error(), "the URLs of 1 Repositories are not claimed by Plumbline yet") {
		t.Error(err)
	}
	if err := e.own.Tracker().Add(claim(app("team-a"))); err != nil {
		t.Fatal(err)
	}
	if err := o.check(e.Context(), &operated{enabled: true}); err != nil {
		t.Errorf("after plumb migrate finish: %v", err)
	}
}
