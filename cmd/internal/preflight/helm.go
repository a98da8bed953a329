// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/plumbline-ci/plumbline/pkg/config"
)

// releaseAnnotation has the name of the release on each object that Helm installs.
const releaseAnnotation = "meta.helm.sh/release-name"

// loggingConfig is the ConfigMap of knative's logger.
const loggingConfig = "plumbline-config-logging"

// The files of config/ with the rights of both components.
const (
	clusterRoles = "config/210-clusterroles.yaml -f config/220-clusterrolebindings.yaml"
	roles        = "config/230-roles.yaml -f config/240-rolebindings.yaml"
)

// HelmRelease returns the Helm release that installed Plumbline in a namespace; empty if Helm did
// not. It is in an annotation of the ConfigMap with the settings. If the chart does not install
// that one (existingConfigMap), it is in the ConfigMap of knative's logger. Both components may
// list the first one by its name.
func HelmRelease(ctx context.Context, kube kubernetes.Interface, namespace string) (string, error) {
	for _, name := range []string{config.Name, loggingConfig} {
		named := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()}
		list, err := kube.CoreV1().ConfigMaps(namespace).List(ctx, named)
		if err != nil && (name == config.Name || !apierrors.IsForbidden(err)) {
			return "", err
		}
		for i := 0; err == nil && i < len(list.Items); i++ {
			if list.Items[i].Name == name {
				return list.Items[i].Annotations[releaseAnnotation], nil
			}
		}
	}
	return "", nil
}

// apply returns the command that installs files of config/ again, or the Helm release that has
// their objects. If that cannot be found out, it is the command for config/.
func (c *Checker) apply(ctx context.Context, files string) string {
	release, err := HelmRelease(ctx, c.kube, c.Namespace)
	if err != nil || release == "" {
		return "kubectl apply -f " + files
	}
	return fmt.Sprintf("helm upgrade %s <chart of this version> -n %s -f values.yaml", release, c.Namespace)
}

// unread returns a finding about an object that could not be read. The rights to read it are in
// files.
func (c *Checker) unread(ctx context.Context, object string, err error, rights, files string) Finding {
	if !refused(err) {
		return unknown(object, err, tryAgain)
	}
	return unknown(object, err, "let this account "+rights+": "+c.apply(ctx, files))
}
