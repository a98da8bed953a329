// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/testcache"
)

// product is the namespace config/ is written for.
const product = "plumbline"

// definitions is the kind that is installed once a cluster, whatever the number of installations.
const definitions = "CustomResourceDefinition"

// manifests reads config/ as `kubectl apply -f config/` does: its files in order, no folders.
func manifests() ([]*unstructured.Unstructured, error) {
	root, err := root()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(root, "config")
	if err := testcache.Files(config); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(config, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", config, err)
	}
	slices.Sort(files)
	return objectsOf(files...)
}

// objectsOf reads the documents of files.
func objectsOf(files ...string) (objects []*unstructured.Unstructured, err error) {
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the manifests: %w", err)
		}
		documents, err := cluster.Documents(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		objects = append(objects, documents...)
	}
	return objects, nil
}

// move rewrites the objects for another namespace, so that many installations share a cluster. What
// is cluster-wide gets a name of its own.
func move(objects []*unstructured.Unstructured, namespace string) {
	for _, object := range objects {
		if object.GetNamespace() == product {
			object.SetNamespace(namespace)
		}
		switch object.GetKind() {
		case "Namespace":
			object.SetName(namespace)
		case "ClusterRole":
			object.SetName(own(object.GetName(), namespace))
		case "ClusterRoleBinding", "RoleBinding":
			moveBinding(object, namespace)
		}
	}
}

func moveBinding(object *unstructured.Unstructured, namespace string) {
	if object.GetKind() == "ClusterRoleBinding" {
		object.SetName(own(object.GetName(), namespace))
	}
	if kind, _, _ := unstructured.NestedString(object.Object, "roleRef", "kind"); kind == "ClusterRole" {
		name, _, _ := unstructured.NestedString(object.Object, "roleRef", "name")
		_ = unstructured.SetNestedField(object.Object, own(name, namespace), "roleRef", "name")
	}
	subjects, _, _ := unstructured.NestedSlice(object.Object, "subjects")
	for _, subject := range subjects {
		if fields, ok := subject.(map[string]any); ok && fields["namespace"] == product {
			fields["namespace"] = namespace
		}
	}
	_ = unstructured.SetNestedSlice(object.Object, subjects, "subjects")
}

func own(name, namespace string) string {
	if namespace == product {
		return name
	}
	return name + "-" + namespace
}

// Configure changes one value of a ConfigMap among the objects.
func Configure(objects []*unstructured.Unstructured, name, key, value string) error {
	for _, object := range objects {
		if object.GetKind() == "ConfigMap" && object.GetName() == name {
			return unstructured.SetNestedField(object.Object, value, "data", key)
		}
	}
	return fmt.Errorf("there is no ConfigMap %s", name)
}

// apply applies the objects that keep says to keep.
func apply(ctx context.Context, c *cluster.Cluster, objects []*unstructured.Unstructured,
	keep func(kind string) bool) error {
	text, err := Encode(slices.DeleteFunc(slices.Clone(objects), func(object *unstructured.Unstructured) bool {
		return !keep(object.GetKind())
	}))
	if err != nil {
		return err
	}
	return c.Apply(ctx, text)
}

// Encode returns objects as a stream of YAML documents.
func Encode(objects []*unstructured.Unstructured) ([]byte, error) {
	var stream bytes.Buffer
	for _, object := range objects {
		data, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("encoding %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		stream.WriteString("---\n")
		stream.Write(data)
	}
	return stream.Bytes(), nil
}

func all(string) bool { return true }

// Deployment is one of config/'s.
func Deployment(name string) (*appsv1.Deployment, error) {
	objects, err := manifests()
	if err != nil {
		return nil, err
	}
	deployment := &appsv1.Deployment{}
	if err := find(objects, "Deployment", name, deployment); err != nil {
		return nil, fmt.Errorf("config/: %w", err)
	}
	return deployment, nil
}
