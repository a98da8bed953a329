// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
)

// kubelet plays the part of a kubelet that the API server calls: it serves the logs of containers.
type kubelet struct {
	server *httptest.Server
	core   corev1client.CoreV1Interface
	pods   cache.Store
}

func newKubelet(core corev1client.CoreV1Interface, pods cache.Store) *kubelet {
	k := &kubelet{core: core, pods: pods}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", k.logs)
	k.server = httptest.NewTLSServer(routes) // the API server verifies no kubelet without a CA of its own
	return k
}

// describe writes into a Node where its kubelet is.
func (k *kubelet) describe(status *corev1.NodeStatus) error {
	host, port, err := net.SplitHostPort(k.server.Listener.Addr().String())
	if err != nil {
		return fmt.Errorf("the address of the kubelet: %w", err)
	}
	n, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		return fmt.Errorf("the port of the kubelet: %w", err)
	}
	status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host}}
	status.DaemonEndpoints.KubeletEndpoint.Port = int32(n)
	return nil
}

// logs answers as the pod's annotations say. By default a container has written one line.
func (k *kubelet) logs(w http.ResponseWriter, r *http.Request) {
	pod := k.pod(r)
	for pod != nil && pod.Annotations[LogAnswerAnnotation] == "hang" {
		select {
		case <-r.Context().Done():
			return
		case <-time.After(retryMin):
			pod = k.pod(r)
		}
	}
	if pod == nil {
		http.Error(w, "no such pod", http.StatusNotFound)
		return
	}
	if code, err := strconv.Atoi(pod.Annotations[LogAnswerAnnotation]); err == nil {
		http.Error(w, "the annotation says so", code)
		return
	}
	text, written := pod.Annotations[LogAnnotation]
	if !written {
		text = "the log of container " + r.PathValue("container")
	}
	lines := strings.SplitAfter(strings.TrimSuffix(k.reveal(r, text), "\n"), "\n")
	if n, err := strconv.Atoi(r.URL.Query().Get("tailLines")); err == nil && n < len(lines) {
		lines = lines[len(lines)-n:]
	}
	_, _ = io.WriteString(w, strings.Join(lines, "")+"\n")
}

func (k *kubelet) pod(r *http.Request) *corev1.Pod {
	object, _, _ := k.pods.GetByKey(r.PathValue("namespace") + "/" + r.PathValue("pod"))
	pod, _ := object.(*corev1.Pod)
	return pod
}

var reference = regexp.MustCompile(`<(secret|base64) ([^/>]+)/([^>]+)>`)

// reveal puts the values of Secrets into a text.
func (k *kubelet) reveal(r *http.Request, text string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		part := reference.FindStringSubmatch(found)
		secret, err := k.core.Secrets(r.PathValue("namespace")).Get(r.Context(), part[2], metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if part[1] == "base64" {
			return base64.StdEncoding.EncodeToString(secret.Data[part[3]])
		}
		return string(secret.Data[part[3]])
	})
}
