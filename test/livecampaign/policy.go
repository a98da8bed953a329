// SPDX-License-Identifier: Apache-2.0

package livecampaign

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	typedadmissionv1 "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"

	pkgfault "github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// removeLimit is how long the campaign tries to remove what it created, even after an
	// interrupt.
	removeLimit = 30 * time.Second
	// retryEvery is how often a call is repeated.
	retryEvery = time.Second
)

// policy refuses Plumbline's patches of the canary's PipelineRuns. The policy exists during the
// whole campaign and keeps a second one away. It refuses patches while its binding exists.
type policy struct {
	client typedadmissionv1.AdmissionregistrationV1Interface
	canary types.NamespacedName
	system string
	hold   time.Duration
	say    func(format string, args ...any)
	// limit is how long a removal is retried before the problem is reported.
	limit time.Duration
	// on is true while something may be refused.
	on atomic.Bool
}

// policyName is the name of the policy and of its binding. Names of namespaces have no dots, so two
// canaries never share a name.
func policyName(canary types.NamespacedName) string {
	return canary.Namespace + "." + canary.Name + ".campaign.plumbline.dev"
}

// clean says how to remove what a campaign has left.
func (p *policy) clean() string {
	return fmt.Sprintf("livecampaign --clean --namespace %s --repository %s", p.canary.Namespace, p.canary.Name)
}

// prepare tries all later calls as dry runs. If an object could be created but not deleted, it
// would stay.
func (p *policy) prepare(ctx context.Context) (string, error) {
	tried, name := []string{metav1.DryRunAll}, policyName(p.canary)
	_, err := p.client.ValidatingAdmissionPolicies().Create(ctx, p.object(), metav1.CreateOptions{DryRun: tried})
	switch {
	case apierrors.IsAlreadyExists(err):
		return "", p.errUnderWay()
	case apierrors.IsNotFound(err):
		return "", errors.New(
			"the cluster has no ValidatingAdmissionPolicy of admissionregistration.k8s.io/v1 (Kubernetes 1.30)",
		)
	case err != nil:
		return "", fmt.Errorf("creating a ValidatingAdmissionPolicy: %w", err)
	}
	if _, err := p.client.ValidatingAdmissionPolicyBindings().
		Create(ctx, p.binding(), metav1.CreateOptions{DryRun: tried}); err != nil {
		return "", fmt.Errorf("creating a ValidatingAdmissionPolicyBinding: %w", err)
	}
	for kind, remove := range p.removals() {
		if err := remove(ctx, name, metav1.DeleteOptions{DryRun: tried}); err != nil && !pkgfault.Gone(err) {
			return "", fmt.Errorf("deleting the %s afterwards: %w", kind, err)
		}
	}
	return fmt.Sprintf(
		"create the ValidatingAdmissionPolicy %s, and for %s at a time its binding: it refuses what ServiceAccounts of namespace %s patch on PipelineRuns of this Repository. "+
			"They run as ever; labels and annotations are written to them later, and what is to end them (a newer run, a closed pull request, /cancel) does so later. "+
			"Both are deleted at the end",
		name,
		p.hold,
		p.system,
	), nil
}

// errUnderWay is returned if the policy of a campaign exists.
func (p *policy) errUnderWay() error {
	return fmt.Errorf("another campaign is under way, or has left its policy: %s removes that", p.clean())
}

// left returns an error if the policy or binding of a campaign exists. An object that cannot be
// read counts as missing.
func (p *policy) left(ctx context.Context) error {
	_, err := p.client.ValidatingAdmissionPolicies().Get(ctx, policyName(p.canary), metav1.GetOptions{})
	_, bound := p.client.ValidatingAdmissionPolicyBindings().Get(ctx, policyName(p.canary), metav1.GetOptions{})
	if err == nil || bound == nil {
		return p.errUnderWay()
	}
	return nil
}

// object matches no status: that is a subresource, and Tekton's.
func (p *policy) object() *admissionv1.ValidatingAdmissionPolicy {
	ignore := admissionv1.Ignore // what cannot be evaluated refuses nothing
	return &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: policyName(p.canary)},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &ignore,
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{
					MatchLabels: map[string]string{"kubernetes.io/metadata.name": p.canary.Namespace},
				},
				ObjectSelector: &metav1.LabelSelector{MatchLabels: ownRuns(p.canary.Name, p.system)},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule: admissionv1.Rule{
						APIGroups:   []string{"tekton.dev"},
						APIVersions: []string{"*"},
						Resources:   []string{"pipelineruns"},
					},
				}}},
			},
			MatchConditions: []admissionv1.MatchCondition{
				{
					Name:       "plumbline",
					Expression: fmt.Sprintf("request.userInfo.username.startsWith(%q)", "system:serviceaccount:"+p.system+":"),
				},
			},
			Validations: []admissionv1.Validation{
				{Expression: "false", Message: "livecampaign refuses this patch for a short while"},
			},
		},
	}
}

// begin creates the policy, which refuses nothing yet. A policy that exists already is another
// campaign's.
func (p *policy) begin(ctx context.Context) error {
	_, err := p.client.ValidatingAdmissionPolicies().Create(ctx, p.object(), metav1.CreateOptions{})
	if err == nil {
		return nil
	}
	err = fmt.Errorf("creating the ValidatingAdmissionPolicy: %w", err)
	if !apierrors.IsAlreadyExists(err) { // it may have been created anyway
		err = errors.Join(err, p.remove(ctx))
	}
	return err
}

func (p *policy) inject(ctx context.Context) error {
	p.on.Store(true)
	_, err := p.client.ValidatingAdmissionPolicyBindings().Create(ctx, p.binding(), metav1.CreateOptions{})
	if err == nil {
		p.say("policy: patches of the canary's PipelineRuns are refused")
		pause(ctx, p.hold)
	} // else it may exist anyway
	left := p.unbind(ctx)
	// an outage may last longer: as long as patches are refused nothing else is done
	for left != nil && pause(ctx, retryEvery) {
		left = p.unbind(ctx)
	}
	p.on.Store(false)
	err = errors.Join(err, left)
	if err == nil {
		p.say("policy: patches are accepted again")
	}
	return err
}

func (p *policy) binding() *admissionv1.ValidatingAdmissionPolicyBinding {
	return &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policyName(p.canary)},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policyName(p.canary), ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
}

// The kinds of what a campaign makes.
const kindPolicy, kindBinding = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"

// removal deletes the object of a name.
type removal func(context.Context, string, metav1.DeleteOptions) error

// removals are the calls that delete what a campaign makes, by its kind.
func (p *policy) removals() map[string]removal {
	return map[string]removal{
		kindPolicy:  p.client.ValidatingAdmissionPolicies().Delete,
		kindBinding: p.client.ValidatingAdmissionPolicyBindings().Delete,
	}
}

func (p *policy) unbind(ctx context.Context) error { return p.gone(ctx, kindBinding) }

// remove deletes the binding and the policy.
func (p *policy) remove(ctx context.Context) error {
	return errors.Join(p.unbind(ctx), p.gone(ctx, kindPolicy))
}

// gone repeats a delete until it has worked, even when ctx has ended. A 404 may come from a proxy,
// or from an API server that does not serve the kind. It does not prove that the object is missing.
func (p *policy) gone(ctx context.Context, kind string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.limit)
	defer cancel()
	var last error
	err := wait.PollUntilContextCancel(ctx, retryEvery, true, func(ctx context.Context) (bool, error) {
		last = p.removals()[kind](ctx, policyName(p.canary), metav1.DeleteOptions{})
		return last == nil || pkgfault.Gone(last), nil
	})
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s %s is left: %w; %s removes it", kind, policyName(p.canary), last, p.clean())
	p.say("%v", err)
	return err
}

// Clean removes what a campaign that was killed has left.
func (c *Campaign) Clean(ctx context.Context) error { return c.newPolicy().remove(ctx) }

func (c *Campaign) newPolicy() *policy {
	return &policy{
		client: c.kube.AdmissionregistrationV1(),
		canary: c.Canary,
		system: c.System,
		hold:   c.Hold,
		limit:  removeLimit,
		say:    c.say,
	}
}
