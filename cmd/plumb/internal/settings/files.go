// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"sigs.k8s.io/yaml"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

// readRepository reads a Repository as kubectl applies it, or prints it.
func (s *Settings) readRepository(data []byte, namespace string) error {
	repository := &pacv1alpha1.Repository{}
	kind := metav1.TypeMeta{APIVersion: pacv1alpha1.SchemeGroupVersion.String(), Kind: "Repository"}
	if err := readObject(data, kind, repository); err != nil {
		return fmt.Errorf("--repository: %w", err)
	}
	if repository.Name == "" {
		return errors.New("--repository: metadata.name is empty: give the Repository the name it has in the cluster")
	}
	if namespace != "" && repository.Namespace != "" && repository.Namespace != namespace {
		return fmt.Errorf("--repository: it is in the namespace %s, and --namespace says %s: leave one of them out",
			repository.Namespace, namespace)
	}
	repository.Namespace = cmp.Or(repository.Namespace, namespace, defaultNamespace)
	s.Repository = repository
	return nil
}

func (s *Settings) readConfig(data []byte) error {
	configMap := &corev1.ConfigMap{}
	kind := metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	if err := readObject(data, kind, configMap); err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	if len(configMap.BinaryData) > 0 {
		return errors.New("--config: binaryData is not read: the settings are texts in data")
	}
	s.configure(configMap.Data)
	return nil
}

// readObject reads one object of a kind from YAML or JSON. It refuses unknown fields by name,
// because a misspelt setting would otherwise have no effect.
func readObject(data []byte, want metav1.TypeMeta, into runtime.Object) error {
	data, err := one(data)
	if err != nil {
		return fmt.Errorf("%w: it must hold one %s", err, want.Kind)
	}
	var have metav1.TypeMeta
	if err := yaml.Unmarshal(data, &have); err != nil {
		return fmt.Errorf("this is not a %s in YAML: %s", want.Kind, readable(err))
	}
	if have != want {
		return fmt.Errorf("this is %s, not a %s of %s", shown(have), want.Kind, want.APIVersion)
	}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(want.GroupVersionKind(), into)
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme,
		json.SerializerOptions{Yaml: true, Strict: true})
	if _, _, err := decoder.Decode(data, nil, into); err != nil {
		return fmt.Errorf("this is not a %s: %s", want.Kind, readable(err))
	}
	return nil
}

// one returns the only document that has content.
func one(data []byte) ([]byte, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var found []byte
	for document := range bytes.SplitSeq(append([]byte("\n"), data...), []byte("\n---")) {
		var content any
		if err := yaml.Unmarshal(document, &content); err == nil && content == nil {
			continue
		}
		if found != nil {
			return nil, errors.New("it holds several objects")
		}
		found = document
	}
	if found == nil {
		return nil, errEmpty
	}
	return found, nil
}

func shown(kind metav1.TypeMeta) string {
	if kind.Kind == "" {
		return "an object without a kind"
	}
	return strings.TrimSpace("a " + kind.Kind + " of " + cmp.Or(kind.APIVersion, "no apiVersion"))
}

// wrongType matches the JSON decoder's message about a value of the wrong type, with the type and
// the field.
var wrongType = regexp.MustCompile(
	`^cannot unmarshal (\S+)(?: \S+)? into Go (?:struct field [^.\s]+\.(\S+) of type|value of type) \S+$`,
)

// readable returns a decoder's error without the names of Go functions and types.
func readable(err error) string {
	message := err.Error()
	for _, prefix := range []string{"error converting YAML to JSON: ", "error unmarshaling JSON: ", "while decoding JSON: ", "strict decoding error: ", "json: ", "yaml: ", "unmarshal errors:"} {
		message = strings.TrimSpace(strings.TrimPrefix(message, prefix))
	}
	said := wrongType.FindStringSubmatch(message)
	if said == nil {
		return message
	}
	kind := map[string]string{"array": "a list", "object": "a mapping", "string": "a text", "number": "a number (put quotes around it)", "bool": "true or false (put quotes around it)"}[said[1]]
	return cmp.Or(said[2], "it") + " cannot be " + cmp.Or(kind, said[1])
}
