// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-ci/plumbline/cmd/internal/preflight"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/pac"
	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
)

// partOf is on every object of config/ but the CustomResourceDefinitions.
const partOf = "app.kubernetes.io/part-of=plumbline"

// object is one object that is deleted.
type object struct {
	kind            schema.GroupVersionResource
	namespace, name string
}

// String names it as kubectl takes it.
func (o object) String() string {
	kind := o.kind.Resource
	if o.kind.Group != "" {
		kind += "." + o.kind.Group
	}
	if o.namespace == "" {
		return kind + "/" + o.name
	}
	return fmt.Sprintf("%s/%s in namespace %s", kind, o.name, o.namespace)
}

// group is a kind whose objects are deleted together.
type group struct {
	schema.GroupVersionResource
	// everywhere includes objects of other namespaces that are bound to this installation.
	everywhere bool
	// name is that of the only object, which is in another namespace; empty for all names.
	name string
	// selects reports whether an object is one of this installation; nil for the label.
	selects func(*unstructured.Unstructured) bool
}

const rbac = "rbac.authorization.k8s.io"

func kind(group, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
}

// deployments are deleted first, so that nothing is created again.
func deployments() schema.GroupVersionResource { return kind("apps", "deployments") }

func definitions() schema.GroupVersionResource {
	return kind("apiextensions.k8s.io", "customresourcedefinitions")
}

// groups lists what is deleted, in this order. others are the namespaces of other installations.
func (u *Uninstaller) groups(others []string) []group {
	bound := func(o *unstructured.Unstructured) bool { return u.bound(o, others) }
	all := []group{{GroupVersionResource: deployments()}}
	for _, k := range []schema.GroupVersionResource{
		kind("networking.k8s.io", "ingresses"), kind("route.openshift.io", "routes"),
		kind("gateway.networking.k8s.io", "httproutes"), kind("", "services"), kind("policy", "poddisruptionbudgets"),
		kind("networking.k8s.io", "networkpolicies"), kind("monitoring.coreos.com", "servicemonitors"),
		kind("monitoring.coreos.com", "prometheusrules"), kind("", "resourcequotas"), kind("", "configmaps"),
	} {
		all = append(all, group{GroupVersionResource: k})
	}
	all = append(all,
		group{GroupVersionResource: kind("", "secrets"), selects: func(o *unstructured.Unstructured) bool {
			_, copied := webhooksecret.ShardNumber(o.GetName())
			return copied
		}},
		group{GroupVersionResource: kind("coordination.k8s.io", "leases"), selects: func(o *unstructured.Unstructured) bool {
			return strings.HasPrefix(o.GetName(), string(preflight.Controller)+".")
		}},
		group{GroupVersionResource: kind(rbac, "rolebindings"), everywhere: true, selects: bound},
		group{GroupVersionResource: kind(rbac, "roles")},
		group{GroupVersionResource: kind(rbac, "clusterrolebindings"), everywhere: true, selects: bound},
		group{GroupVersionResource: kind("", "serviceaccounts")},
	)
	if len(others) == 0 {
		all = append(all, ofCluster()...)
		// The objects of a CustomResourceDefinition are deleted with it.
		all = append(all, group{GroupVersionResource: definitions(), everywhere: true, selects: u.ownDefinition})
	}
	return all
}

func (u *Uninstaller) ownDefinition(o *unstructured.Unstructured) bool {
	return strings.HasSuffix(o.GetName(), "."+plumbline.GroupName) ||
		u.Repositories && o.GetName() == "repositories."+pipelinesascode.GroupName
}

// bound reports whether a binding of Plumbline's is for an account of this installation, and for
// none of the others.
func (u *Uninstaller) bound(o *unstructured.Unstructured, others []string) bool {
	subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
	names := func(namespaces ...string) bool {
		return slices.ContainsFunc(subjects, func(s any) bool {
			subject, _ := s.(map[string]any)
			namespace, _ := subject["namespace"].(string)
			return slices.Contains(namespaces, namespace)
		})
	}
	return names(u.Namespace) && !names(others...) && o.GetLabels()["app.kubernetes.io/part-of"] == "plumbline"
}

// objects lists what is deleted, in this order. Other installations in the cluster keep what they
// share with this one.
func (u *Uninstaller) objects(ctx context.Context, others []string) ([]object, error) {
	var all []object
	for _, g := range u.groups(others) {
		found, err := u.find(ctx, g)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// ofCluster lists what all installations in the cluster share: ClusterRoles, and the names of
// Pipelines-as-Code in its namespace (config/optional/pipelines-as-code-names.yaml).
func ofCluster() []group {
	const info = "pipelines-as-code-info"
	return []group{
		{GroupVersionResource: kind("", "services"), everywhere: true, name: pac.ControllerName},
		{GroupVersionResource: kind("", "configmaps"), everywhere: true, name: info},
		{GroupVersionResource: kind(rbac, "rolebindings"), everywhere: true, name: info},
		{GroupVersionResource: kind(rbac, "roles"), everywhere: true, name: info},
		{GroupVersionResource: kind(rbac, "clusterroles"), everywhere: true},
	}
}

func (u *Uninstaller) find(ctx context.Context, g group) ([]object, error) {
	options := metav1.ListOptions{}
	if g.selects == nil {
		options.LabelSelector = partOf
	}
	if g.name != "" {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, g.name).String()
	}
	namespace := u.Namespace
	if g.everywhere {
		namespace = metav1.NamespaceAll
	}
	list, err := u.Cluster.Dynamic.Resource(g.GroupVersionResource).Namespace(namespace).List(ctx, options)
	if apierrors.IsNotFound(err) { // the cluster does not have the kind
		return nil, nil
	}
	if err != nil {
		return nil, kube.Failed("listing the "+g.Resource, err)
	}
	var all []object
	for i := range list.Items {
		item := &list.Items[i]
		elsewhere := item.GetName() == g.name && item.GetNamespace() != u.Namespace
		if (g.name == "" || elsewhere) && (g.selects == nil || g.selects(item)) {
			all = append(all, object{g.GroupVersionResource, item.GetNamespace(), item.GetName()})
		}
	}
	return all, nil
}

// delete deletes an object. One that is gone is no error.
func (u *Uninstaller) delete(ctx context.Context, o object) error {
	background := metav1.DeletePropagationBackground
	err := u.Cluster.Dynamic.Resource(o.kind).Namespace(o.namespace).
		Delete(ctx, o.name, metav1.DeleteOptions{PropagationPolicy: &background})
	if err != nil && !apierrors.IsNotFound(err) {
		return kube.Failed("deleting "+o.String(), err)
	}
	u.say("Deleted %s", o)
	return nil
}

// others returns the namespaces of other installations in the cluster.
func (u *Uninstaller) others(ctx context.Context) ([]string, error) {
	selector := "app.kubernetes.io/name=" + string(preflight.Controller)
	list, err := u.Cluster.Kube.AppsV1().Deployments(metav1.NamespaceAll).
		List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, kube.Failed("looking for other installations", err)
	}
	var all []string
	for i := range list.Items {
		if namespace := list.Items[i].Namespace; namespace != u.Namespace {
			all = append(all, namespace)
		}
	}
	if len(all) > 0 && u.Repositories {
		return nil, errors.New("--delete-repositories would delete the Repositories of the installations in " +
			strings.Join(all, ", ") + ", too: uninstall those first")
	}
	return all, nil
}
