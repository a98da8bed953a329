// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	manifests "github.com/plumbline-ci/plumbline/config"
)

// wanted is what this binary needs to be installed.
type wanted struct {
	// roles are those that are bound to a component.
	roles       map[Component][]role
	definitions []definition
	services    []corev1.Service
}

// role is a Role or ClusterRole.
type role struct {
	kind, name string
	rules      []rbacv1.PolicyRule
}

// definition is the part of a CustomResourceDefinition that is compared.
type definition struct {
	file string
	Spec struct {
		Group    string
		Names    struct{ Kind, Plural string }
		Scope    string
		Versions []struct {
			Name             string
			Schema           struct{ OpenAPIV3Schema jsonSchema }
			Subresources     map[string]any
			SelectableFields []struct{ JSONPath string }
		}
	}
}

func readWanted() (*wanted, error) {
	w := &wanted{roles: map[Component][]role{}}
	known := map[string]role{}
	var bindings []rbacv1.RoleBinding
	err := each(func(file, kind string, document []byte) error {
		switch kind {
		case "Role", "ClusterRole":
			var found rbacv1.ClusterRole // a Role has the same rules
			err := yaml.Unmarshal(document, &found)
			known[kind+" "+found.Name] = role{kind, found.Name, found.Rules}
			return err
		case "RoleBinding", "ClusterRoleBinding":
			return into(&bindings, document)
		case "Service":
			return into(&w.services, document)
		}
		if err := into(&w.definitions, document); err != nil {
			return err
		}
		w.definitions[len(w.definitions)-1].file = file
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, binding := range bindings {
		for _, subject := range binding.Subjects {
			component := Component(subject.Name)
			w.roles[component] = append(w.roles[component], known[binding.RoleRef.Kind+" "+binding.RoleRef.Name])
		}
	}
	return w, nil
}

func into[T any](all *[]T, document []byte) error {
	var object T
	err := yaml.Unmarshal(document, &object)
	*all = append(*all, object)
	return err
}

// each calls f with every object of the manifests.
func each(f func(file, kind string, document []byte) error) error {
	names, err := fs.Glob(manifests.Files, "*.yaml")
	if err != nil {
		return fmt.Errorf("listing the manifests: %w", err)
	}
	slices.Sort(names)
	for _, name := range names {
		data, err := manifests.Files.ReadFile(name)
		if err != nil {
			return fmt.Errorf("reading the manifests: %w", err)
		}
		documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			var head struct{ Kind string }
			if err == nil {
				err = yaml.Unmarshal(document, &head)
			}
			if err == nil && head.Kind != "" { // comments before the first separator are no document
				err = f(name, head.Kind, document)
			}
			if err != nil {
				return fmt.Errorf("manifest %s: %w", name, err)
			}
		}
	}
	return nil
}
