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
	// config is the TektonConfig, nil if there is none. platforms are those for which it has
	// settings of PaC: openshift or kubernetes, or both after an upgrade of the operator.
	config    *unstructured.Unstructured
	platforms []string
	enabled   bool
	// pac identifies the OpenShiftPipelinesAsCode, sets are the TektonInstallerSets that it owns.
	pac          types.UID
	sets         []string
	repositories []unstructured.Unstructured
}

// read reads the cluster. It reads the definition after what writes the owner references of the
// definition: when this is gone, the owner references are those that stay.
func (m *Migration) read(ctx context.Context) (*operated, error) {
	s := &operated{}
	var err error
	if s.config, err = m.object(ctx, ofOperator("tektonconfigs"), configName); err != nil {
		return nil, err
	}
	pac, err := m.object(ctx, ofOperator("openshiftpipelinesascodes"), pacName)
	if err != nil {
		return nil, err
	}
	if pac != nil {
		s.pac = pac.GetUID()
	}
	s.readSettings()
	installed, err := m.objects(ctx, ofOperator("tektoninstallersets"))
	if err != nil {
		return nil, err
	}
	for _, set := range installed {
		ofPaC := func(owner metav1.OwnerReference) bool { return owner.Kind == pacKind }
		if slices.ContainsFunc(set.GetOwnerReferences(), ofPaC) {
			s.sets = append(s.sets, set.GetName())
		}
	}
	if s.definition, err = m.object(ctx, definitions(), definitionName); err != nil {
		return nil, err
	}
	if s.definition == nil {
		return nil, errors.New("this cluster has no CustomResourceDefinition " + definitionName)
	}
	s.repositories, err = m.objects(ctx, repositories())
	return s, err
}

// readSettings reads whether PaC is on. An operator that has defaulted a TektonConfig has written
// the settings of its platform. One that does not know PaC writes none.
func (s *operated) readSettings() {
	if s.config == nil {
		return
	}
	for _, platform := range []string{"openshift", "kubernetes"} {
		settings, found, _ := unstructured.NestedMap(s.config.Object, "spec", "platforms", platform, "pipelinesAsCode")
		if found {
			enable, set := settings["enable"].(bool)
			s.platforms, s.enabled = append(s.platforms, platform), s.enabled || enable || !set
		}
	}
	if len(s.platforms) == 0 {
		s.platforms, s.enabled = []string{"kubernetes"}, s.pac != ""
	}
}

// setting says which fields turn PaC on or off.
func (s *operated) setting(on bool) string {
	var fields []string
	for _, platform := range s.platforms {
		fields = append(fields, fmt.Sprintf("spec.platforms.%s.pipelinesAsCode.enable: %t", platform, on))
	}
	return fmt.Sprintf("set %s in TektonConfig %s", strings.Join(fields, " and "), configName)
}

// left returns what the operator has not deleted yet. The operator deletes what belongs to a
// TektonInstallerSet before the TektonInstallerSet itself.
func (s *operated) left() (left []string) {
	if s.pac != "" {
		left = append(left, pacKind+" "+pacName)
	}
	for _, set := range s.sets {
		left = append(left, "TektonInstallerSet "+set)
	}
	return left
}

// names returns the names of the Repositories.
func (s *operated) names() (names []types.NamespacedName) {
	for i := range s.repositories {
		r := &s.repositories[i]
		names = append(names, types.NamespacedName{Namespace: r.GetNamespace(), Name: r.GetName()})
	}
	return names
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
	err = kube.Pages(metav1.ListOptions{}, func(options metav1.ListOptions) (string, error) {
		list, err := m.Cluster.Dynamic.Resource(of).List(ctx, options)
		if err != nil {
			return "", err
		}
		all = append(all, list.Items...)
		return list.GetContinue(), nil
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, kube.Failed("listing "+of.Resource, err)
	}
	return all, nil
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
	if s.config == nil && s.pac == "" && !on {
		return nil // the user has deleted it
	}
	if s.config == nil {
		return fmt.Errorf("there is no TektonConfig %s, which turns Pipelines-as-Code on and off: "+
			"kubectl delete openshiftpipelinesascode %s", configName, pacName)
	}
	platforms := map[string]any{}
	for _, platform := range s.platforms {
		platforms[platform] = map[string]any{"pipelinesAsCode": map[string]any{"enable": on}}
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"platforms": platforms}})
	if err != nil {
		return err
	}
	_, err = o.Cluster.Dynamic.Resource(ofOperator("tektonconfigs")).
		Patch(ctx, configName, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return kube.Failed("trying to "+s.setting(on), err)
	}
	o.say("TektonConfig %s turns Pipelines-as-Code %s", configName, onOrOff(on))
	return nil
}

func onOrOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
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
