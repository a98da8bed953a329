// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"text/template"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plumbline-ci/plumbline/test/installation"
)

// socket is where containerd listens: below /run, because the path of a socket is limited.
const socket = "/run/node/containerd.sock"

//go:embed settings
var settingFiles embed.FS

// configure writes the settings of the node's programs, chosen by what this machine has.
func (n *node) configure() error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	plugin, _ := find("ptp")
	values := map[string]any{
		"Run": n.dir, "Socket": socket, "Tools": toolsImage, "CNI": filepath.Dir(plugin), "CgroupRoot": cgroupRoot,
		"Node": nodeName, "Address": nodeAddress, "Pods": podNetwork,
		"AppArmor": hasAppArmor(), "MayLowerOOMScore": mayLowerOOMScore(string(status)),
	}
	all, err := template.ParseFS(settingFiles, "settings/*")
	if err != nil {
		return err
	}
	for _, file := range all.Templates() {
		var text bytes.Buffer
		if err := file.Execute(&text, values); err != nil {
			return err
		}
		path := filepath.Join(n.dir, file.Name())
		if filepath.Ext(path) == ".conflist" {
			path = filepath.Join(n.dir, "cni", file.Name())
		}
		if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
			return err
		}
	}
	return writeCredentials(n.dir)
}

// start starts a program of the node. Its end ends the scenarios, because it should not end.
func (n *node) start(program string, args ...string) error {
	path := filepath.Join(n.dir, "bin", program)
	if _, err := os.Stat(path); err != nil {
		path, _ = find(program)
	}
	log, err := os.Create(n.log(program))
	if err != nil {
		return err
	}
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", program, err)
	}
	go func() {
		n.failed(fmt.Errorf("%s has ended: %w; see %s", program, errors.Join(cmd.Wait(), errEnded), n.log(program)))
	}()
	return nil
}

var errEnded = errors.New("nothing should end it")

func (n *node) log(program string) string { return filepath.Join(n.dir, "logs", program+".log") }

func (n *node) file(name string) string { return filepath.Join(n.dir, name) }

// boot starts the node.
func (n *node) boot(ctx context.Context) (string, error) {
	if err := n.configure(); err != nil {
		return "", err
	}
	err := errors.Join(n.etcd(), n.start("containerd", "--config="+n.file("containerd.toml")), n.apiServer())
	if err != nil {
		return "", err
	}
	if err := n.connect(ctx); err != nil {
		return "", err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return n.importImages(groupCtx) })
	group.Go(n.controllers)
	if err := group.Wait(); err != nil {
		return "", err
	}
	return n.ready(ctx)
}

func (n *node) etcd() error {
	const client, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
	return n.start("etcd", "--name=node", "--data-dir="+n.file("etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=node="+peer)
}

func (n *node) apiServer() error {
	certificate, key, accounts := n.file("node.crt"), n.file("node.key"), n.file("accounts.key")
	return n.start("kube-apiserver", "--etcd-servers=http://127.0.0.1:2379",
		"--bind-address="+nodeAddress, "--advertise-address="+nodeAddress, "--secure-port=6443",
		"--tls-cert-file="+certificate, "--tls-private-key-file="+key, "--token-auth-file="+n.file("tokens.csv"),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+accounts, "--service-account-signing-key-file="+accounts,
		"--kubelet-client-certificate="+certificate, "--kubelet-client-key="+key,
		"--kubelet-certificate-authority="+certificate, "--kubelet-preferred-address-types=InternalIP",
		"--service-cluster-ip-range="+services)
}

func (n *node) controllers() error {
	kubeconfig := func(program string) string { return "--kubeconfig=" + n.file(program+".kubeconfig") }
	return errors.Join(
		n.start("kube-controller-manager", kubeconfig("kube-controller-manager"), "--leader-elect=false",
			"--use-service-account-credentials", "--root-ca-file="+n.file("node.crt"),
			"--service-account-private-key-file="+n.file("accounts.key")),
		n.start("kube-scheduler", kubeconfig("kube-scheduler"), "--leader-elect=false"),
		n.start("kubelet", "--config="+n.file("kubelet.yaml"), kubeconfig("kubelet"), "--hostname-override="+nodeName,
			"--node-ip="+nodeAddress, "--root-dir="+n.file("kubelet"), "--cert-dir="+n.file("kubelet/pki")),
		n.start("kube-proxy", "--config="+n.file("kube-proxy.yaml")))
}

// connect makes the clients and waits until the API server is ready.
func (n *node) connect(ctx context.Context) (err error) {
	if n.config, err = clientcmd.BuildConfigFromFlags("", n.file("admin.kubeconfig")); err != nil {
		return err
	}
	n.Installation, err = installation.Adopt(n.config, installation.Options{Namespace: plumblineNamespace})
	if err != nil {
		return err
	}
	return until(ctx, "the API server is ready", func() error {
		status := 0
		result := n.Kube.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&status)
		if status != http.StatusOK {
			return fmt.Errorf("/readyz is answered %d: %w", status, errors.Join(result.Error(), errNotYet))
		}
		return nil
	})
}

var errNotYet = errors.New("not yet")

// importImages puts the images into containerd's store, by name and by digest.
func (n *node) importImages(ctx context.Context) error {
	layouts, err := filepath.Glob(n.file("images/*"))
	if err != nil {
		return err
	}
	for _, layout := range layouts {
		name := "node.invalid/" + filepath.Base(layout)
		script := `tar -C "$0" -cf - . | ctr -a ` + socket + ` -n k8s.io images import --digests --base-name "$1" --index-name "$1:1" -`
		err := until(ctx, "containerd has "+name, func() error {
			out, err := exec.CommandContext(ctx, "sh", "-c", script, layout, name).CombinedOutput()
			if err != nil {
				return fmt.Errorf("importing %s: %w: %s", name, err, out)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (n *node) ready(ctx context.Context) (seen string, err error) {
	err = until(ctx, "the node is Ready", func() error {
		found, err := n.Kube.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		version := "v2"
		if v1, _, err := hierarchies(); err == nil && len(v1) > 0 {
			version = "v1"
		}
		info := found.Status.NodeInfo
		seen = fmt.Sprintf("kubelet %s, %s, kernel %s, cgroup %s",
			info.KubeletVersion, info.ContainerRuntimeVersion, info.KernelVersion, version)
		for _, condition := range found.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return errNotYet
	})
	return seen, err
}
