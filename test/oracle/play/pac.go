// SPDX-License-Identifier: Apache-2.0

package play

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// pacNamespace is where its release is installed.
const pacNamespace = "pipelines-as-code"

// installOriginal applies what the release ships, stores the App's credentials and starts the
// controller and the watcher, which call the API server at proxy and the forge at api. It returns
// both processes, and where the controller listens.
func installOriginal(
	ctx context.Context, c *cluster.Cluster, proxy *cluster.Proxy, built original, app forge.App, api string,
) (url string, parts map[string]*cluster.Part, err error) {
	manifests, err := shipped(built.config, built.settings)
	if err != nil {
		return "", nil, err
	}
	if err := c.Apply(ctx, manifests); err != nil {
		return "", nil, err
	}
	kube, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return "", nil, err
	}
	parts = map[string]*cluster.Part{}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "pipelines-as-code-secret"},
		StringData: map[string]string{
			"github-application-id": strconv.FormatInt(app.ID, 10), "github-private-key": app.PrivateKeyPEM,
			"webhook.secret": app.WebhookSecret,
		},
	}
	if _, err := kube.CoreV1().Secrets(pacNamespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return "", nil, fmt.Errorf("storing the App's credentials: %w", err)
	}
	for _, process := range []struct{ name, port string }{
		{watcher, "PAC_WATCHER_PORT"}, {controller, "PAC_CONTROLLER_PORT"},
	} {
		path := filepath.Join(built.bin, process.name)
		if url, parts[process.name], err = startOriginal(ctx, c, proxy, path, process.port, api); err != nil {
			return "", nil, err
		}
	}
	return url, parts, nil
}

// shipped is the release's manifests, but for Deployments, for which our processes stand in, and
// its admission webhook.
func shipped(dir string, settings map[string]string) ([]byte, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	for _, path := range paths {
		if strings.Contains(filepath.Base(path), "webhook") {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		objects, err := cluster.Documents(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, object := range objects {
			if err := keep(&all, object.Object, settings); err != nil {
				return nil, err
			}
		}
	}
	if all.Len() == 0 {
		return nil, fmt.Errorf("%s has no manifests", dir)
	}
	return all.Bytes(), nil
}

// keep writes an object that is needed here. Logs of runs cannot be read from nodes that are not
// there, and metrics have no port.
func keep(to io.Writer, object map[string]any, settings map[string]string) error {
	if slices.Contains([]string{"Deployment", "Service"}, fmt.Sprint(object["kind"])) {
		return nil
	}
	meta, _ := object["metadata"].(map[string]any)
	data, _ := object["data"].(map[string]any)
	switch fmt.Sprint(meta["name"]) {
	case "pipelines-as-code":
		if data != nil {
			data["error-log-snippet"], data["error-detection-from-container-logs"] = "false", "false"
			data["tekton-dashboard-url"] = "https://dashboard.example.com"
			for key, value := range settings {
				data[key] = value
			}
		}
	case "pipelines-as-code-config-observability":
		object["data"] = map[string]any{"metrics-protocol": "none"}
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(to, "---\n%s", text)
	return err
}

// startOriginal starts a process with the rights of the ServiceAccount that is called like it, and
// waits until it answers at the port that it is told by an environment variable.
func startOriginal(
	ctx context.Context, c *cluster.Cluster, proxy *cluster.Proxy, path, portVariable, api string,
) (string, *cluster.Part, error) {
	name := filepath.Base(path)
	token, err := c.Token(ctx, pacNamespace, name)
	if err != nil {
		return "", nil, err
	}
	kubeconfig := filepath.Join(c.Dir(), name+".kubeconfig")
	if err := proxy.Kubeconfig(kubeconfig, token); err != nil {
		return "", nil, err
	}
	var ports [2]int
	for i := range ports {
		if ports[i], err = c.FreePort(); err != nil {
			return "", nil, err
		}
	}
	url := fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	part := c.Add(cluster.Process{
		Name: name, Path: path,
		Env: []string{
			"KUBECONFIG=" + kubeconfig, "SYSTEM_NAMESPACE=" + pacNamespace, "NAMESPACE=" + pacNamespace, "POD_NAME=" + name,
			portVariable + "=" + strconv.Itoa(ports[0]), "PROFILING_PORT=" + strconv.Itoa(ports[1]),
			"PAC_DISABLE_HEALTH_PROBE=true", "PAC_DISABLE_HA=true",
			"PAC_CONTROLLER_LABEL=default", "PAC_CONTROLLER_SECRET=pipelines-as-code-secret",
			"PAC_CONTROLLER_CONFIGMAP=pipelines-as-code",
			"CONFIG_LOGGING_NAME=pac-config-logging", "CONFIG_OBSERVABILITY_NAME=pipelines-as-code-config-observability",
			"CONFIG_LEADERELECTION_NAME=pac-watcher-config-leader-election", "METRICS_DOMAIN=tekton.dev/pipelinesascode",
			"KUBERNETES_MIN_VERSION=v1.28.0", "K_SINK_TIMEOUT=30", "PAC_GIT_PROVIDER_TOKEN_APIURL=" + api + "/api/v3",
		},
		Ready: func(ctx context.Context) error { return installation.Answers(ctx, url+"/live") },
	})
	return url, part, part.Start(ctx)
}
