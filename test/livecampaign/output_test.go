// SPDX-License-Identifier: Apache-2.0

package livecampaign

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	tektonfake "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/fake"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	ownfake "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
)

// Ctrl-C in "livecampaign | tee log" ends tee first. What is printed then must not end the
// campaign before it has removed its policy.
func TestACampaignThatNobodyReadsRemovesItsPolicy(t *testing.T) {
	const unread = "CAMPAIGN_UNREAD"
	if os.Getenv(unread) != "" {
		os.Exit(left(t))
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	process := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$") // #nosec G204 -- this test itself
	process.Env, process.Stdout = append(os.Environ(), unread+"=1"), write
	err = process.Start()
	_, _ = read.Close(), write.Close()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(); err != nil {
		t.Errorf("it ended with %v, and left its policy", err)
	}
}

// left interrupts a campaign while patches are refused. It returns how many of its objects are
// left.
func left(t *testing.T) int {
	kube := fake.NewClientset()
	c := newTest(nil, kube, "policy")
	c.Out, c.Length, c.tekton, c.plumbline = os.Stdout, time.Hour, tektonfake.NewSimpleClientset(),
		ownfake.NewSimpleClientset()
	ctx, interrupt := context.WithCancel(t.Context())
	kube.PrependReactor("create", "validatingadmissionpolicybindings",
		func(clienttesting.Action) (bool, runtime.Object, error) {
			time.AfterFunc(10*time.Millisecond, interrupt)
			return false, nil, nil
		})
	_ = c.Run(ctx)
	policies, _ := kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(t.Context(), metav1.ListOptions{})
	bindings, _ := kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().List(t.Context(),
		metav1.ListOptions{})
	return len(policies.Items) + len(bindings.Items)
}
