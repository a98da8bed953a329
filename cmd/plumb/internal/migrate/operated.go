// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
)

// The objects of the Tekton operator, as its code names them: pkg/apis/operator/v1alpha1/const.go
// of tektoncd/operator.
const (
	operatorGroup  = "operator.tekton.dev"
	configName     = "config"
	pacName        = "pipelines-as-code"
	pacKind        = "OpenShiftPipelinesAsCode"
	definitionName = "repositories." + pipelinesascode.GroupName
)

// The platforms of a TektonConfig.
const (
	openShift  = "openshift"
	kubernetes = "kubernetes"
)

func ofOperator(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: operatorGroup, Version: "v1alpha1", Resource: resource}
}

func definitions() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

func repositories() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: pipelinesascode.GroupName, Version: "v1alpha1", Resource: "repositories"}
}

// operated is what a cluster has of PaC and of the operator.
type operated struct {
	definition *unstructured.Unstructured
	// config is the TektonConfig, nil if there is none. It has the settings of PaC for a platform.
	config   *unstructured.Unstructured
	platform string
	enabled  bool
	// pac identifies the OpenShiftPipelinesAsCode, sets are the TektonInstallerSets that it owns.
	pac  types.UID
	sets []string
	// items are the Repositories, repositories their identities.
	items        []unstructured.Unstructured
	repositories map[types.UID]types.NamespacedName
}

// errNoDefinition is returned if there are no Repositories to keep.
var errNoDefinition = errors.New("this cluster has no CustomResourceDefinition " + definitionName)

// read reads the cluster.
func (m *Migration) read(ctx context.Context) (*operated, error) {
	s := &operated{repositories: map[types.UID]types.NamespacedName{}}
	var err error
	if s.definition, err = m.object(ctx, definitions(), definitionName); err != nil {
		return nil, err
	}
	if s.definition == nil {
		return nil, errNoDefinition
	}
	if s.config, err = m.object(ctx, ofOperator("tektonconfigs"), configName); err != nil {
		return nil, err
	}
	s.choosePlatform()
	pac, err := m.object(ctx, ofOperator("openshiftpipelinesascodes"), pacName)
	if err != nil {
		return nil, err
	}
	if pac != nil {
		s.pac = pac.GetUID()
	}
	sets, err := m.objects(ctx, ofOperator("tektoninstallersets"))
	if err != nil {
		return nil, err
	}
	for _, set := range sets {
		ofPaC := func(owner metav1.OwnerReference) bool { return owner.Kind == pacKind }
		if slices.ContainsFunc(set.GetOwnerReferences(), ofPaC) {
			s.sets = append(s.sets, set.GetName())
		}
	}
	if s.items, err = m.objects(ctx, repositories()); err != nil {
		return nil, err
	}
	for _, r := range s.items {
		s.repositories[r.GetUID()] = types.NamespacedName{Namespace: r.GetNamespace(), Name: r.GetName()}
	}
	return s, nil
}

// choosePlatform finds the settings of PaC. An operator that has defaulted a TektonConfig has
// written them.
func (s *operated) choosePlatform() {
	s.platform = kubernetes
	if s.config == nil {
		return
	}
	for _, platform := range []string{kubernetes, openShift} {
		_, found, _ := unstructured.NestedMap(s.config.Object, "spec", "platforms", platform, "pipelinesAsCode")
		if found {
			s.platform = platform
		}
	}
	enabled, found, _ := unstructured.NestedBool(s.config.Object, "spec", "platforms", s.platform, "pipelinesAsCode",
		"enable")
	s.enabled = enabled || !found // the operator's default
}

// target returns the namespace of PaC.
func (s *operated) target() string {
	if s.config == nil {
		return pacName
	}
	namespace, _, _ := unstructured.NestedString(s.config.Object, "spec", "targetNamespace")
	return cmp.Or(namespace, "openshift-pipelines")
}

// owners returns the owner references of the definition to objects of the operator.
func (s *operated) owners() []metav1.OwnerReference {
	return slices.DeleteFunc(s.definition.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
		return !strings.HasPrefix(r.APIVersion, operatorGroup+"/")
	})
}

// object reads an object without a namespace, nil if there is none.
func (m *Migration) object(
	ctx context.Context, of schema.GroupVersionResource, name string,
) (*unstructured.Unstructured, error) {
	object, err := m.Cluster.Dynamic.Resource(of).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) { // also if the kind is not served
		return nil, nil
	}
	if err != nil {
		return nil, kube.Failed(fmt.Sprintf("reading %s %s", of.Resource, name), err)
	}
	return object, nil
}

// objects reads all objects of a kind in pages; none if the kind is not served.
func (m *Migration) objects(
	ctx context.Context, of schema.GroupVersionResource,
) (all []unstructured.Unstructured, err error) {
	const page = 500
	options := metav1.ListOptions{Limit: page}
	for {
		list, err := m.Cluster.Dynamic.Resource(of).List(ctx, options)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, kube.Failed("listing "+of.Resource, err)
		}
		all = append(all, list.Items...)
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return all, nil
		}
	}
}

// kept reads the cluster again. It returns an error if a Repository of before is gone.
func (o *Operator) kept(ctx context.Context, before *operated) (*operated, error) {
	now, err := o.read(ctx)
	switch {
	case err != nil:
		return now, err
	case now.definition.GetUID() != before.definition.GetUID() || now.definition.GetDeletionTimestamp() != nil:
		return now, fmt.Errorf("CustomResourceDefinition %s was deleted, and all Repositories with it. %s",
			definitionName, o.restore())
	}
	return now, o.missing(before.repositories, now)
}

func (o *Operator) still(ctx context.Context, before *operated) error {
	_, err := o.kept(ctx, before)
	return err
}

// missing returns an error that names Repositories that do not exist any more.
func (o *Operator) missing(wanted map[types.UID]types.NamespacedName, now *operated) error {
	const shown = 5
	var gone []string
	for uid, r := range wanted {
		if _, there := now.repositories[uid]; !there {
			gone = append(gone, r.String())
		}
	}
	if len(gone) == 0 {
		return nil
	}
	slices.Sort(gone)
	return fmt.Errorf("%d Repositories are gone, among them %s. %s If they were deleted on purpose, move the file away",
		len(gone), strings.Join(gone[:min(shown, len(gone))], ", "), o.restore())
}

func (o *Operator) restore() string {
	return "The backup is " + o.Backup + ": kubectl create -f " + o.Backup + "."
}

// release removes owner references of the operator from the definition. On the way back those of
// the OpenShiftPipelinesAsCode that exists stay.
func (o *Operator) release(ctx context.Context, s *operated) error {
	remaining := slices.DeleteFunc(s.definition.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
		return strings.HasPrefix(r.APIVersion, operatorGroup+"/") && (!o.Back || r.UID != s.pac)
	})
	if len(remaining) == len(s.definition.GetOwnerReferences()) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": s.definition.GetResourceVersion(), "ownerReferences": remaining,
	}})
	if err != nil {
		return err
	}
	_, err = o.Cluster.Dynamic.Resource(definitions()).
		Patch(ctx, definitionName, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsConflict(err) { // it was changed meanwhile
		now, err := o.kept(ctx, s)
		if err != nil {
			return err
		}
		return o.release(ctx, now)
	}
	if err != nil {
		return kube.Failed("removing owner references from CustomResourceDefinition "+definitionName, err)
	}
	return nil
}

// enable turns PaC on or off in the TektonConfig.
func (o *Operator) enable(ctx context.Context, s *operated, on bool) error {
	if s.config == nil {
		return fmt.Errorf("there is no TektonConfig %s, which turns Pipelines-as-Code on and off: "+
			"kubectl delete openshiftpipelinesascode %s", configName, pacName)
	}
	field := fmt.Sprintf("spec.platforms.%s.pipelinesAsCode.enable", s.platform)
	patch := fmt.Sprintf(`{"spec":{"platforms":{%q:{"pipelinesAsCode":{"enable":%t}}}}}`, s.platform, on)
	_, err := o.Cluster.Dynamic.Resource(ofOperator("tektonconfigs")).
		Patch(ctx, configName, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return kube.Failed(fmt.Sprintf("setting %s in TektonConfig %s", field, configName), err)
	}
	o.say("%s is %t in TektonConfig %s", field, on, configName)
	return nil
}

// operatorRights are those that turning PaC off or on needs.
func operatorRights() (all []authorizationv1.ResourceAttributes) {
	add := func(group, resource, name string, verbs ...string) {
		for _, verb := range verbs {
			all = append(all, authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Name: name})
		}
	}
	add(definitions().Group, definitions().Resource, definitionName, "patch", "delete")
	add(operatorGroup, "tektonconfigs", configName, "patch")
	for _, resource := range []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"} {
		add("admissionregistration.k8s.io", resource, "", "create")
		add("admissionregistration.k8s.io", resource, guardName, "get", "delete")
	}
	return all
}
