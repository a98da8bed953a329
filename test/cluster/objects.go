// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	yamlreader "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

// fieldManager names us in the managed fields of what we apply.
const fieldManager = "plumbline-test-cluster"

// applyPatience bounds how long Apply waits for a kind that was just defined.
const applyPatience = 15 * time.Second

// Apply applies a file of YAML documents with server-side apply as the administrator: definitions
// of custom resources first (waiting until they are served), then namespaces, then the rest in the
// order given. Objects without a namespace go to "default". It can be repeated.
func (c *Cluster) Apply(ctx context.Context, manifests []byte) error {
	objects, err := Documents(manifests)
	if err != nil {
		return fmt.Errorf("applying: %w", err)
	}
	return c.applyObjects(ctx, objects)
}

// ApplyTo applies the documents to another cluster, as Cluster.Apply does.
func ApplyTo(ctx context.Context, config *rest.Config, manifests []byte) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	return (&Cluster{config: config, dynamic: client}).Apply(ctx, manifests)
}

func (c *Cluster) applyObjects(ctx context.Context, objects []*unstructured.Unstructured) error {
	ordered := slices.Clone(objects)
	slices.SortStableFunc(ordered, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	var crds []*unstructured.Unstructured
	for _, object := range ordered {
		if rank(object) == 0 {
			crds = append(crds, object)
		}
	}
	mapper, err := c.mapper()
	if err != nil {
		return err
	}
	for i, object := range ordered {
		if i == len(crds) {
			if err := c.established(ctx, crds); err != nil {
				return err
			}
		}
		if err := c.applyOne(ctx, mapper, object); err != nil {
			return err
		}
	}
	if len(ordered) == len(crds) {
		return c.established(ctx, crds)
	}
	return nil
}

func rank(object *unstructured.Unstructured) int {
	switch object.GetKind() {
	case "CustomResourceDefinition":
		return 0
	case "Namespace":
		return 1
	default:
		return 2
	}
}

// applyOne has patience with a kind that the server does not serve yet: a new
// definition takes a moment to reach the handlers after it is Established.
func (c *Cluster) applyOne(
	ctx context.Context,
	mapper *restmapper.DeferredDiscoveryRESTMapper,
	object *unstructured.Unstructured,
) error {
	ctx, cancel := context.WithTimeout(ctx, applyPatience)
	defer cancel()
	var final error
	err := Poll(ctx, 100*time.Millisecond, func() error {
		client, err := c.resource(mapper, object)
		if err == nil {
			_, err = client.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		}
		if meta.IsNoMatchError(err) || notServed(err) {
			mapper.Reset()
			return err
		}
		final = err
		return nil
	})
	if err = errors.Join(err, final); err != nil {
		return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// notServed distinguishes a missing kind from a missing object or namespace, which the server
// names.
func notServed(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsNotFound(err) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == ""
}

func (c *Cluster) resource(
	mapper meta.RESTMapper,
	object *unstructured.Unstructured,
) (dynamic.ResourceInterface,
	error) {
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return c.dynamic.Resource(mapping.Resource), nil
	}
	if object.GetNamespace() == "" {
		object.SetNamespace(metav1.NamespaceDefault)
	}
	return c.dynamic.Resource(mapping.Resource).Namespace(object.GetNamespace()), nil
}

func (c *Cluster) mapper() (*restmapper.DeferredDiscoveryRESTMapper, error) {
	client, err := discovery.NewDiscoveryClientForConfig(c.config)
	if err != nil {
		return nil, fmt.Errorf("making a discovery client: %w", err)
	}
	return restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client)), nil
}

// established waits until the server serves every definition.
func (c *Cluster) established(ctx context.Context, crds []*unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, applyPatience)
	defer cancel()
	for _, crd := range crds {
		err := Poll(ctx, 30*time.Millisecond, func() error {
			now, err := c.dynamic.Resource(crdResource()).Get(ctx, crd.GetName(), metav1.GetOptions{})
			if err != nil {
				return err
			}
			if status := ConditionOf(now, "Established").Status; status != "True" {
				return fmt.Errorf("condition Established is %q", status)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("waiting for %s: %w", crd.GetName(), err)
		}
	}
	return nil
}

func crdResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

// Documents splits YAML documents and leaves empty ones out.
func Documents(data []byte) ([]*unstructured.Unstructured, error) {
	reader := yamlreader.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var objects []*unstructured.Unstructured
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("splitting YAML documents: %w", err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, fmt.Errorf("reading a YAML document: %w", err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if object.GetKind() == "" || object.GetAPIVersion() == "" {
			return nil, errors.New("reading a YAML document: it has no apiVersion or no kind")
		}
		objects = append(objects, object)
	}
}
