// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	tektonModule   = "github.com/tektoncd/pipeline"
	webhookService = "tekton-pipelines-webhook"
)

// tektonObjects are the objects of Tekton's release, in the order in which they are needed.
type tektonObjects struct {
	crds []*unstructured.Unstructured
	// config is what its processes read when they start.
	config []*unstructured.Unstructured
	rest   []*unstructured.Unstructured
}

// loadTekton reads Tekton's manifests in the background; the result waits for them.
func (c *Cluster) loadTekton(ctx context.Context) func() (*tektonObjects, error) {
	var loaded *tektonObjects
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		loaded, err = readTekton(ctx, c.dialled[TektonWebhook], c.creds)
	}()
	return func() (*tektonObjects, error) {
		<-done
		return loaded, err
	}
}

// TektonManifests returns the manifests of Tekton's module, except those of the event sender and of
// the resolvers. Each image is "ko://" and the package of its program.
func TektonManifests(ctx context.Context) ([]*unstructured.Unstructured, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	dir, err := moduleDir(ctx, root, "tekton", tektonModule)
	if err != nil {
		return nil, err
	}
	objects, err := readTektonFolder(filepath.Join(dir, "config"))
	if err != nil {
		return nil, fmt.Errorf("reading Tekton's manifests: %w", err)
	}
	return objects, nil
}

func readTekton(ctx context.Context, webhookPort int, creds *credentials) (*tektonObjects, error) {
	objects, err := TektonManifests(ctx)
	if err != nil {
		return nil, err
	}
	sorted := &tektonObjects{}
	for _, object := range objects {
		adaptTekton(object, int64(webhookPort), creds)
		switch object.GetKind() {
		case "CustomResourceDefinition":
			sorted.crds = append(sorted.crds, object)
		case "ConfigMap", "Secret", "Service":
			sorted.config = append(sorted.config, object)
		case "Deployment", "HorizontalPodAutoscaler", "Namespace":
			// Our processes stand in for the first; the namespace comes before all.
		default:
			sorted.rest = append(sorted.rest, object)
		}
	}
	return sorted, nil
}

// readTektonFolder leaves out what belongs to the event sender and to the
// resolvers, which do not run here.
func readTektonFolder(dir string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && entry.Name() == "resolvers" {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".yaml" || slices.Contains([]string{"events.yaml", "webhook-hpa.yaml"}, entry.Name()) {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		read, err := Documents(data)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		objects = append(objects, read...)
		return nil
	})
	return objects, err
}

// adaptTekton changes the few fields that make Tekton reachable on loopback.
// It also gives the webhook its certificate: Tekton would make one itself, but
// writing its authority into the definitions afterwards makes the API server
// end all watches of Tekton's kinds, seconds after the start.
func adaptTekton(object *unstructured.Unstructured, webhookPort int64, creds *credentials) {
	switch object.GetKind() {
	case "Service":
		if object.GetName() == webhookService {
			// The API server dials an ExternalName Service by its name and
			// still verifies the certificate for the Service's own.
			object.Object["spec"] = map[string]any{"type": "ExternalName", "externalName": "localhost"}
		}
	case "ConfigMap":
		if object.GetName() == "config-observability" {
			object.Object["data"] = map[string]any{"metrics-protocol": "none"}
		}
	case "Secret":
		if object.GetName() == "webhook-certs" {
			object.Object["data"] = map[string]any{
				"ca-cert.pem": encode(creds.ca), "server-cert.pem": encode(creds.ca), "server-key.pem": encode(creds.keyPEM),
			}
		}
	case "CustomResourceDefinition":
		adaptConversion(object, webhookPort, creds.ca)
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		webhooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
		for _, webhook := range webhooks {
			setPort(webhook.(map[string]any), webhookPort, "clientConfig", "service")
		}
		object.Object["webhooks"] = webhooks
	}
}

// adaptConversion leaves nothing for Tekton's webhook to change.
func adaptConversion(crd *unstructured.Unstructured, webhookPort int64, ca []byte) {
	client, found, _ := unstructured.NestedMap(crd.Object, "spec", "conversion", "webhook", "clientConfig")
	if !found {
		return
	}
	setPort(client, webhookPort, "service")
	client["caBundle"] = encode(ca)
	service := client["service"].(map[string]any)
	service["path"] = "/resource-conversion"
	// The parents are maps, as NestedMap just saw.
	_ = unstructured.SetNestedMap(crd.Object, client, "spec", "conversion", "webhook", "clientConfig")
}

func encode(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

func setPort(object map[string]any, port int64, service ...string) {
	if _, found, _ := unstructured.NestedMap(object, service...); found {
		// The parents are maps, as NestedMap just saw.
		_ = unstructured.SetNestedField(object, port, append(service, "port")...)
	}
}

// installTekton creates Tekton's objects and starts its processes, and returns
// when the admission webhook judges PipelineRuns.
func (c *Cluster) installTekton(ctx context.Context, tekton *tektonObjects) error {
	namespace := object("v1", "Namespace", "", tektonNamespace)
	if err := c.create(ctx, namespace); err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := c.create(groupCtx, tekton.crds...); err != nil {
			return err
		}
		if err := c.established(groupCtx, tekton.crds); err != nil {
			return err
		}
		c.progress.step("custom resources")
		// From here on: both look for kinds when they start, and again only half a minute later.
		return c.startTogether(groupCtx, ControllerManager, TektonController)
	})
	group.Go(func() error {
		if err := c.create(groupCtx, tekton.config...); err != nil {
			return err
		}
		if err := c.create(groupCtx, tekton.rest...); err != nil {
			return err
		}
		return c.start(groupCtx, TektonWebhook)
	})
	if err := group.Wait(); err != nil {
		return fmt.Errorf("installing Tekton: %w", err)
	}
	if err := c.awaitAdmission(ctx); err != nil {
		return fmt.Errorf("waiting for Tekton's admission webhook: %w", err)
	}
	return nil
}

func (c *Cluster) startTogether(ctx context.Context, names ...string) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range names {
		group.Go(func() error { return c.start(ctx, name) })
	}
	return group.Wait()
}

// create creates objects that cannot exist yet, several at a time. It derives
// the resource from the kind by the naming rule, which spares the discovery.
func (c *Cluster) create(ctx context.Context, objects ...*unstructured.Unstructured) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, object := range objects {
		group.Go(func() error {
			resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
			_, err := c.dynamic.Resource(resource).Namespace(object.GetNamespace()).
				Create(ctx, object, metav1.CreateOptions{FieldManager: fieldManager})
			if err != nil {
				return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
			}
			return nil
		})
	}
	return group.Wait()
}

// awaitAdmission tries a PipelineRun, without storing it, until it comes back
// with a field that only Tekton's webhook fills in.
func (c *Cluster) awaitAdmission(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	runs := c.dynamic.Resource(PipelineRuns()).Namespace("default")
	trial := object("tekton.dev/v1", "PipelineRun", "default", "trial")
	trial.Object["spec"] = map[string]any{"pipelineRef": map[string]any{"name": "any"}}
	return Poll(ctx, 50*time.Millisecond, func() error {
		// Apply, not create: the API server delays a create by two seconds
		// while the definition is that new.
		answer, err := runs.Apply(ctx, trial.GetName(), trial,
			metav1.ApplyOptions{FieldManager: fieldManager, DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return err
		}
		account, _, _ := unstructured.NestedString(answer.Object, "spec", "taskRunTemplate", "serviceAccountName")
		if account == "" {
			return errors.New("the webhook does not take part yet")
		}
		return nil
	})
}

// PipelineRuns is the resource of Tekton's PipelineRun in its stored version.
func PipelineRuns() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "tekton.dev", Version: "v1", Resource: "pipelineruns"}
}

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}
