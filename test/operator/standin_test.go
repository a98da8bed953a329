// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
)

const (
	group     = "operator.tekton.dev"
	version   = group + "/v1alpha1"
	hashKey   = group + "/last-applied-hash"
	finalizer = "tektoninstallersets." + group
	pacName   = "pipelines-as-code"
	look      = 50 * time.Millisecond
)

// standIn does what the Tekton operator does for Pipelines-as-Code, read in tektoncd/operator:
// EnsureOpenShiftPipelinesAsCodeExists and ...CRNotExists in
// pkg/reconciler/shared/tektonconfig/pipelinesascode, makeMainSets in
// pkg/reconciler/kubernetes/tektoninstallerset/client/create.go, ensureResources and
// DeleteResources in .../tektoninstallerset/install.go, and injectOwnerForCRDsAndNamespace in
// .../transformer.go.
type standIn struct {
	client dynamic.Interface
	// static and deployments are the manifests of the two TektonInstallerSets.
	static, deployments []*unstructured.Unstructured
	// restores makes it write the owner references at each look, also just before it finalizes a
	// TektonInstallerSet. The real one compares a hash first, so it restores them when its version,
	// or the definition's, has changed.
	restores atomic.Bool
	// waits makes it leave a TektonInstallerSet whose manifests it has deleted.
	waits atomic.Bool
}

func operated(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: "v1alpha1", Resource: resource}
}

func resourceOf(object *unstructured.Unstructured) schema.GroupVersionResource {
	resources := map[string]string{
		"CustomResourceDefinition": "customresourcedefinitions", "ConfigMap": "configmaps", "Deployment": "deployments",
		"ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
	}
	gvk := object.GroupVersionKind()
	return gvk.GroupVersion().WithResource(resources[gvk.Kind])
}

func (s *standIn) of(object *unstructured.Unstructured) dynamic.ResourceInterface {
	if object.GetNamespace() == "" {
		return s.client.Resource(resourceOf(object))
	}
	return s.client.Resource(resourceOf(object)).Namespace(object.GetNamespace())
}

// run reconciles until ctx ends. An error is repaired at the next look.
func (s *standIn) run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		s.config(ctx)
		sets, err := s.client.Resource(operated("tektoninstallersets")).List(ctx, metav1.ListOptions{})
		if err != nil {
			return
		}
		for i := range sets.Items {
			s.set(ctx, &sets.Items[i])
		}
	}, look)
}

// config creates or deletes the OpenShiftPipelinesAsCode, and creates its TektonInstallerSets.
func (s *standIn) config(ctx context.Context) {
	config, err := s.client.Resource(operated("tektonconfigs")).Get(ctx, "config", metav1.GetOptions{})
	if err != nil {
		return
	}
	enabled := false
	for _, platform := range []string{"openshift", "kubernetes"} {
		on, _, _ := unstructured.NestedBool(config.Object, "spec", "platforms", platform, "pipelinesAsCode", "enable")
		enabled = enabled || on
	}
	all := s.client.Resource(operated("openshiftpipelinesascodes"))
	pac, err := all.Get(ctx, pacName, metav1.GetOptions{})
	switch {
	case err == nil && !enabled:
		_ = all.Delete(ctx, pacName, metav1.DeleteOptions{})
	case err == nil && pac.GetDeletionTimestamp() == nil:
		s.sets(ctx, pac)
	case apierrors.IsNotFound(err) && enabled:
		pac = operatorObject("OpenShiftPipelinesAsCode", pacName, config)
		_, _ = all.Create(ctx, pac, metav1.CreateOptions{})
	}
}

func operatorObject(kind, name string, owner *unstructured.Unstructured) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetAPIVersion(version)
	object.SetKind(kind)
	object.SetName(name)
	if owner != nil {
		object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
	}
	return object
}

func (s *standIn) sets(ctx context.Context, pac *unstructured.Unstructured) {
	all := s.client.Resource(operated("tektoninstallersets"))
	for name, manifests := range map[string][]*unstructured.Unstructured{
		"openshiftpipelinesascode-main-static": s.static, "openshiftpipelinesascode-main-deployment": s.deployments,
	} {
		set := operatorObject("TektonInstallerSet", name, pac)
		set.SetFinalizers([]string{finalizer})
		set.SetLabels(map[string]string{group + "/created-by": "OpenShiftPipelinesAsCode"})
		var list []any
		for _, m := range manifests {
			list = append(list, m.DeepCopy().Object)
		}
		_ = unstructured.SetNestedSlice(set.Object, list, "spec", "manifests")
		_, _ = all.Create(ctx, set, metav1.CreateOptions{}) // exists at most looks
	}
}

// set installs the manifests of a TektonInstallerSet, or deletes them if it is being deleted.
func (s *standIn) set(ctx context.Context, set *unstructured.Unstructured) {
	list, _, _ := unstructured.NestedSlice(set.Object, "spec", "manifests")
	finalizing := set.GetDeletionTimestamp() != nil
	for _, m := range list {
		object := &unstructured.Unstructured{Object: m.(map[string]any)} //nolint:forcetypeassert // sets wrote it
		definition := object.GetKind() == "CustomResourceDefinition"
		if finalizing && !definition {
			_ = s.of(object).Delete(ctx, object.GetName(), metav1.DeleteOptions{})
		}
		if !finalizing || definition && s.restores.Load() {
			s.ensure(ctx, set, object)
		}
	}
	if finalizing && !s.waits.Load() {
		set.SetFinalizers(nil)
		_, _ = s.client.Resource(operated("tektoninstallersets")).Update(ctx, set, metav1.UpdateOptions{})
	}
}

// ensure applies a manifest unless its hash is that of the object.
func (s *standIn) ensure(ctx context.Context, set, object *unstructured.Unstructured) {
	switch object.GetKind() {
	case "CustomResourceDefinition":
		object.SetOwnerReferences(set.GetOwnerReferences())
	case "ValidatingWebhookConfiguration":
	default:
		object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(set, set.GroupVersionKind())})
	}
	text, _ := json.Marshal(object.Object)
	sum := sha256.Sum256(text)
	object.SetAnnotations(map[string]string{hashKey: hex.EncodeToString(sum[:])})
	there, err := s.of(object).Get(ctx, object.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, _ = s.of(object).Create(ctx, object, metav1.CreateOptions{})
		return
	}
	if err != nil || there.GetDeletionTimestamp() != nil {
		return
	}
	same := there.GetAnnotations()[hashKey] == object.GetAnnotations()[hashKey]
	if same && (!s.restores.Load() || slices.Equal(uids(there), uids(object))) {
		return
	}
	object.SetResourceVersion(there.GetResourceVersion())
	_, _ = s.of(object).Update(ctx, object, metav1.UpdateOptions{})
}

// uids returns the identities of an object's owners.
func uids(object *unstructured.Unstructured) (all []string) {
	for _, owner := range object.GetOwnerReferences() {
		all = append(all, string(owner.UID))
	}
	return all
}
