// SPDX-License-Identifier: Apache-2.0

// Package manifests reads what config/ installs, for tests that hold it to the architecture's
// section on high availability and to least rights. It needs no cluster.
package manifests

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// namespace is where Plumbline is installed.
const namespace = "plumbline"

// config is the folder that is applied, from here.
var config = filepath.Join("..", "..", "config")

// installation is every object of config/, by kind; CRDs are generated and looked at by file only.
type installation struct {
	kinds           map[string][]string // file to the kinds in it, in order
	names           map[string]bool     // "kind namespace/name"
	namespaces      []corev1.Namespace
	serviceAccounts []corev1.ServiceAccount
	configMaps      []corev1.ConfigMap
	services        []corev1.Service
	deployments     []appsv1.Deployment
	budgets         []policyv1.PodDisruptionBudget
	networkPolicies []networkingv1.NetworkPolicy
	clusterRoles    []rbacv1.ClusterRole
	roles           []rbacv1.Role
	clusterBindings []rbacv1.ClusterRoleBinding
	bindings        []rbacv1.RoleBinding
}

// read fails on a field that a kind does not have: kubectl would only warn of it.
func read(t *testing.T) *installation {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(config, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests in %s: %v", config, err)
	}
	all := &installation{kinds: map[string][]string{}, names: map[string]bool{}}
	for _, file := range files {
		for i, document := range documents(t, file) {
			if err := all.add(filepath.Base(file), document); err != nil {
				t.Fatalf("%s, document %d: %v", file, i, err)
			}
		}
	}
	return all
}

func documents(t *testing.T, file string) (all [][]byte) {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, err)
	for _, document := range bytes.Split(data, []byte("\n---\n")) {
		var content map[string]any
		if err := yaml.Unmarshal(document, &content); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(content) != 0 { // comments before the first separator are no document
			all = append(all, document)
		}
	}
	return all
}

// add fails on every kind that is not listed: config/ has no Secret, as an upgrade must not
// overwrite real credentials; no admission webhook (A13), which could be down; and no
// ResourceQuota: while the cluster's quota controller has not counted a kind yet, the API server
// refuses to create objects of it, so a first installation must not have a quota of kinds that it
// defines itself.
func (a *installation) add(file string, document []byte) error {
	var head metav1.PartialObjectMetadata
	if err := yaml.Unmarshal(document, &head); err != nil {
		return err
	}
	a.kinds[file] = append(a.kinds[file], head.Kind)
	name := fmt.Sprintf("%s %s/%s", head.Kind, head.Namespace, head.Name)
	if a.names[name] {
		return fmt.Errorf("%s is there twice", name)
	}
	a.names[name] = true
	const rbac = "rbac.authorization.k8s.io/v1 "
	into := map[string]func([]byte) error{
		"v1 Namespace": to(&a.namespaces), "v1 ServiceAccount": to(&a.serviceAccounts), "v1 ConfigMap": to(&a.configMaps),
		"v1 Service": to(&a.services), "apps/v1 Deployment": to(&a.deployments),
		"policy/v1 PodDisruptionBudget":      to(&a.budgets),
		"networking.k8s.io/v1 NetworkPolicy": to(&a.networkPolicies),
		rbac + "ClusterRole":                 to(&a.clusterRoles), rbac + "Role": to(&a.roles),
		rbac + "ClusterRoleBinding": to(&a.clusterBindings), rbac + "RoleBinding": to(&a.bindings),
		"apiextensions.k8s.io/v1 CustomResourceDefinition": func([]byte) error { return nil },
	}[head.APIVersion+" "+head.Kind]
	if into == nil {
		return fmt.Errorf("kind %s %s is not one that this test knows", head.APIVersion, head.Kind)
	}
	return into(document)
}

func to[T any](all *[]T) func(document []byte) error {
	return func(document []byte) error {
		*all = append(*all, *new(T))
		return yaml.UnmarshalStrict(document, &(*all)[len(*all)-1])
	}
}

func TestFilesHoldOneKindInTheOrderTheyAreApplied(t *testing.T) {
	all := read(t)
	order := []string{
		"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "CustomResourceDefinition",
		"ConfigMap", "Service", "PodDisruptionBudget", "NetworkPolicy", "Deployment",
	}
	last := 0
	for _, file := range slices.Sorted(maps.Keys(all.kinds)) { // kubectl apply -f config/ takes them in this order
		kinds := slices.Compact(slices.Clone(all.kinds[file]))
		if len(kinds) != 1 {
			t.Errorf("%s holds %v, want one kind", file, kinds)
			continue
		}
		place := slices.Index(order, kinds[0])
		if place < last {
			t.Errorf("%s (%s) is applied after a %s", file, kinds[0], order[last])
		}
		last = max(last, place)
	}
}

func TestEverythingIsInPlumblinesNamespace(t *testing.T) {
	all := read(t)
	for name := range all.names {
		kind, object, _ := strings.Cut(name, " ")
		in, _, _ := strings.Cut(object, "/")
		cluster := kind == "Namespace" || strings.HasPrefix(kind, "ClusterRole") || kind == "CustomResourceDefinition"
		if want := map[bool]string{true: "", false: namespace}[cluster]; in != want {
			t.Errorf("%s is in namespace %q, want %q", name, in, want)
		}
	}
	if len(all.namespaces) != 1 || all.namespaces[0].Name != namespace {
		t.Fatalf("namespaces: %v", all.namespaces)
	}
	for _, mode := range []string{"enforce", "audit", "warn"} {
		if got := all.namespaces[0].Labels["pod-security.kubernetes.io/"+mode]; got != "restricted" {
			t.Errorf("Pod Security %s is %q, want restricted", mode, got)
		}
		if got := all.namespaces[0].Labels["pod-security.kubernetes.io/"+mode+"-version"]; got != "latest" {
			t.Errorf("Pod Security %s is that of version %q, want latest", mode, got)
		}
	}
}

// What people copy their credentials into is for Plumbline, and has none.
func TestSecretExampleHasPlaceholders(t *testing.T) {
	var secret corev1.Secret
	documents := documents(t, filepath.Join(config, "examples", "github-app-secret.yaml"))
	must(t, yaml.UnmarshalStrict(documents[0], &secret))
	if secret.Name != "plumbline-github-app" || secret.Namespace != namespace {
		t.Errorf("the example is %s/%s", secret.Namespace, secret.Name)
	}
	for _, key := range []string{"github-application-id", "github-private-key", "webhook.secret"} {
		if !strings.HasPrefix(secret.StringData[key], "REPLACE") {
			t.Errorf("key %s of the example: %q, want a placeholder", key, secret.StringData[key])
		}
	}
}

// A13: there is no conversion webhook that could be down.
func TestNoConversionWebhook(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(config, "*-crd-*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRDs: %v", err)
	}
	for _, file := range files {
		for _, document := range documents(t, file) {
			var crd struct {
				Spec struct{ Conversion *struct{ Strategy string } }
			}
			if err := yaml.Unmarshal(document, &crd); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if c := crd.Spec.Conversion; c != nil && c.Strategy != "None" {
				t.Errorf("%s: conversion by %s", file, c.Strategy)
			}
		}
	}
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
