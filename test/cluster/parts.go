// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// The names of the parts, for Cluster.Part.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controllers"
	TektonWebhook     = "tekton-webhook"
	TektonController  = "tekton-controller"
)

// tektonNamespace is where Tekton's own objects are.
const tektonNamespace = "tekton-pipelines"

// layout is everything the command lines need, decided before the first start.
type layout struct {
	dir, bin         string
	kubeconfig       string
	tektonKubeconfig string
	creds            *credentials
	port             map[string]int
	// dialled is where other parts reach one: its port, or that of a Wire.
	dialled map[string]int
}

// The names of ports; each is also a key of layout.port.
const (
	portEtcdPeer          = "etcd-peer"
	portWebhookProbes     = "tekton-webhook-probes"
	portWebhookProfile    = "tekton-webhook-profile"
	portControllerProfile = "tekton-controller-profile"
)

func portNames() []string {
	return []string{
		Etcd, portEtcdPeer, APIServer, ControllerManager,
		TektonWebhook, portWebhookProbes, portWebhookProfile, TektonController, portControllerProfile,
	}
}

func (l *layout) at(name string) string { return strconv.Itoa(l.port[name]) }

// highLimits lifts the request limits of a client-go client: a test runs more
// PipelineRuns in a minute than a cluster does in a day.
func highLimits() []string { return []string{"--kube-api-qps=1000", "--kube-api-burst=2000"} }

func (l *layout) etcd() *Part {
	client, peer := "http://"+loopback(l.port[Etcd]), "http://"+loopback(l.port[portEtcdPeer])
	return l.part(Etcd, []string{
		"--name=test", "--data-dir=" + filepath.Join(l.dir, "etcd"),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=test=" + peer,
		noFsync, "--log-level=warn",
	}, get(client+"/readyz"))
}

// auditPolicy records who used which right: the calls of service accounts, without bodies.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
  - level: Metadata
    userGroups: ["system:serviceaccounts"]
  - level: None
`

const auditPolicyFile = "audit-policy.yaml"

func (l *layout) auditLog() string { return filepath.Join(l.dir, "logs", "audit.log") }

func (l *layout) apiServer() *Part {
	c := l.creds
	part := l.part(APIServer, []string{
		"--etcd-servers=http://" + loopback(l.dialled[Etcd]),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port=" + l.at(APIServer),
		"--tls-cert-file=" + c.certFile, "--tls-private-key-file=" + c.keyFile,
		"--token-auth-file=" + c.tokenFile, "--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.accountPK, "--service-account-signing-key-file=" + c.accountKey,
		"--service-cluster-ip-range=10.96.0.0/16",
		// No controller here would take the taints of a new Node away again.
		"--disable-admission-plugins=TaintNodesByCondition",
		// Nothing routes to cluster addresses; the Kubernetes Service stays as it is.
		"--endpoint-reconciler-type=none",
		// megabytes: one file, whatever a run writes
		"--audit-policy-file=" + filepath.Join(l.dir, auditPolicyFile), "--audit-log-path=" + l.auditLog(),
		"--audit-log-maxsize=10000",
	}, l.secureGet(APIServer, "/readyz"))
	part.env = collectRarely(1000)
	return part
}

func (l *layout) controllerManager() *Part {
	address := loopback(l.port[ControllerManager])
	return l.part(ControllerManager, []string{"-kubeconfig=" + l.kubeconfig, "-address=" + address},
		get("http://"+address))
}

func (l *layout) tektonWebhook() *Part {
	part := l.part(TektonWebhook, l.tektonFlags(), handshake(loopback(l.port[TektonWebhook])))
	part.env = append(l.tektonEnv(TektonWebhook),
		"CONFIG_LEADERELECTION_NAME=config-leader-election-webhook",
		"WEBHOOK_PORT="+l.at(TektonWebhook),
		"WEBHOOK_ADMISSION_CONTROLLER_NAME=webhook.pipeline.tekton.dev",
		"WEBHOOK_SERVICE_NAME="+webhookService,
		"WEBHOOK_SECRET_NAME=webhook-certs",
		"PROBES_PORT="+l.at(portWebhookProbes),
		"PROFILING_PORT="+l.at(portWebhookProfile))
	return part
}

func (l *layout) tektonController() *Part {
	args := l.tektonFlags()
	for _, image := range []string{"entrypoint", "nop", "sidecarlogresults", "workingdirinit", "shell"} {
		args = append(args, fmt.Sprintf("-%s-image=test.invalid/%s", image, image))
	}
	args = append(args, "-shell-image-win=test.invalid/shell")
	part := l.part(TektonController, args, get("http://"+loopback(l.port[TektonController])+"/readiness"))
	part.env = append(l.tektonEnv(TektonController),
		"CONFIG_DEFAULTS_NAME=config-defaults",
		"CONFIG_LEADERELECTION_NAME=config-leader-election-controller",
		"CONFIG_SPIRE=config-spire",
		"PROBES_PORT="+l.at(TektonController),
		"PROFILING_PORT="+l.at(portControllerProfile))
	return part
}

// tektonFlags switch leader election off: there is one replica, and a killed
// one would otherwise be followed by a minute without a leader.
func (l *layout) tektonFlags() []string {
	return append([]string{"--kubeconfig=" + l.tektonKubeconfig, "--disable-ha=true"}, highLimits()...)
}

func (l *layout) tektonEnv(name string) []string {
	return append(collectRarely(300),
		"SYSTEM_NAMESPACE="+tektonNamespace,
		"POD_NAME="+name,
		"CONFIG_LOGGING_NAME=config-logging",
		"CONFIG_OBSERVABILITY_NAME=config-observability",
		"CONFIG_FEATURE_FLAGS_NAME=feature-flags",
		"KUBERNETES_MIN_VERSION=v1.28.0",
		"METRICS_DOMAIN=tekton.dev/pipeline")
}

// collectRarely lets a process use memory instead of time: a fifth of the API server's time was
// garbage collection.
func collectRarely(percent int) []string {
	return []string{fmt.Sprintf("GOGC=%d", percent), "GOMEMLIMIT=2500MiB"}
}

func (l *layout) part(name string, args []string, ready readiness) *Part {
	return &Part{
		name:  name,
		path:  filepath.Join(l.bin, name),
		args:  args,
		env:   collectRarely(300),
		log:   filepath.Join(l.dir, "logs", name+".log"),
		ready: ready,
	}
}
