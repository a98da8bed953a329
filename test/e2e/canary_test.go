// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/store/blob"
	"github.com/plumbline-ci/plumbline/test/canary"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// S32: no secret of a test is reported anywhere. Every Secret of the cluster is watched from the
// start, so that replaced and deleted values are known too. At its end each environment adds the
// secrets that no Secret has (GitHub's tokens, those of the processes' accounts) and searches
// everything that users may read. At the end of the suite every log is read once more.

// notSecret are keys of Secrets whose values may be public.
var notSecret = map[string]bool{
	".gitconfig": true, "github-application-id": true, corev1.ServiceAccountRootCAKey: true, corev1.TLSCertKey: true,
}

// watchSecrets collects the values of all Secrets of the cluster until ctx ends.
func watchSecrets(ctx context.Context, c *cluster.Cluster, known *canary.Secrets) error {
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return fmt.Errorf("watching Secrets: %w", err)
	}
	all := informers.NewSharedInformerFactory(client, 0)
	learn := func(object any) {
		if secret, is := object.(*corev1.Secret); is {
			learnSecret(known, secret)
		}
	}
	_, err = all.Core().V1().Secrets().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: learn, UpdateFunc: func(_, now any) { learn(now) },
	})
	if err != nil {
		return fmt.Errorf("watching Secrets: %w", err)
	}
	all.Start(ctx.Done())
	all.WaitForCacheSync(ctx.Done())
	return nil
}

func learnSecret(known *canary.Secrets, secret *corev1.Secret) {
	for key, value := range secret.Data {
		if !notSecret[key] {
			known.Add(string(value), secret.Namespace+"/"+secret.Name)
		}
	}
}

// readable is what users may read, by place. Objects that are deleted during a test are added
// before that.
type readable struct {
	mu    sync.Mutex
	texts map[string]string
}

func (r *readable) add(place, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.texts[fmt.Sprintf("%s (%d)", place, len(r.texts))] = text
}

// requireNoSecretLeaked requires (S32) that nothing that users may read in the environment
// contains a secret.
func (env *environment) requireNoSecretLeaked() {
	env.t.Helper()
	if env.t.Failed() {
		return // the scenario may have left the environment as it broke it
	}
	env.learnSecrets()
	env.readObjects()
	env.must(readLogs(env.Cluster, env.Namespace, env.readable.add))
	traffic := env.git.log()
	for _, write := range traffic.writes {
		env.addJSON(fmt.Sprintf("write %d at the Git service", write.N), write, nil)
	}
	for _, request := range traffic.requests {
		env.readable.add("a URL at the Git service", request.Path+"?"+request.Query)
	}
	exempt := env.isParamSecret()
	for place, text := range env.readable.texts {
		for _, found := range shared.secrets.Find(text) {
			if strings.HasPrefix(place, aPipelineRun) && slices.ContainsFunc(found.Origins, exempt) {
				continue
			}
			env.t.Errorf("S32: %s contains, %s, the secret of %v", place, found.Form, found.Origins)
		}
	}
}

const aPipelineRun = "PipelineRuns"

// isParamSecret returns a function that reports whether a value comes from a Secret that the
// Repositories name as a param. In Pipelines as Code an author may put such a value into a
// PipelineRun. It may appear there and nowhere else.
func (env *environment) isParamSecret() func(origin string) bool {
	env.t.Helper()
	list, err := env.Plumbline.PipelinesascodeV1alpha1().Repositories(env.ci).List(env.ctx, metav1.ListOptions{})
	env.must(err)
	var named []string
	for _, repository := range list.Items {
		if repository.Spec.Params == nil {
			continue
		}
		for _, param := range *repository.Spec.Params {
			if param.SecretRef != nil {
				named = append(named, env.ci+"/"+param.SecretRef.Name)
			}
		}
	}
	return func(origin string) bool { return slices.Contains(named, origin) }
}

// learnSecrets adds secrets that are stored in no Secret, and those that the watch may not have
// reported yet.
func (env *environment) learnSecrets() {
	env.t.Helper()
	before := shared.secrets.Len()
	for _, namespace := range []string{env.ci, env.Namespace} {
		list, err := env.Kube.CoreV1().Secrets(namespace).List(env.ctx, metav1.ListOptions{})
		env.must(err)
		for i := range list.Items {
			learnSecret(&shared.secrets, &list.Items[i])
		}
	}
	if env.forge != nil {
		for _, token := range env.forge.Minted() {
			shared.secrets.Add(token, "a token that GitHub issued")
		}
	}
	tokens, err := accountTokens(env.Cluster, env.Namespace)
	env.must(err)
	for account, token := range tokens {
		shared.secrets.Add(token, account)
	}
	if before == 0 {
		env.t.Error("S32: no Secret of the cluster was seen: nothing is shown")
	}
}

// accountTokens returns the tokens with which an installation's processes call the API server, by
// kubeconfig.
func accountTokens(c *cluster.Cluster, namespace string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(c.Dir(), namespace+"-*.kubeconfig"))
	if err != nil {
		return nil, fmt.Errorf("listing kubeconfigs: %w", err)
	}
	tokens := map[string]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading a kubeconfig: %w", err)
		}
		for _, token := range regexp.MustCompile(`token: "([^"]+)"`).FindAllStringSubmatch(string(data), -1) {
			tokens[filepath.Base(file)] = token[1]
		}
	}
	return tokens, nil
}

// addJSON adds an object or a list of them as JSON.
func (env *environment) addJSON(place string, list any, err error) {
	env.t.Helper()
	env.must(err)
	data, err := json.Marshal(list)
	env.must(err)
	env.readable.add(place, string(data))
}

func (env *environment) readObjects() {
	env.t.Helper()
	all := metav1.ListOptions{}
	for _, namespace := range []string{env.ci, env.Namespace} {
		events, err := env.Kube.CoreV1().Events(namespace).List(env.ctx, all)
		env.addJSON("Kubernetes Events in "+namespace, events, err)
		maps, err := env.Kube.CoreV1().ConfigMaps(namespace).List(env.ctx, all)
		env.addJSON("ConfigMaps in "+namespace, maps, err)
		repositories, err := env.Plumbline.PipelinesascodeV1alpha1().Repositories(namespace).List(env.ctx, all)
		env.addJSON("Repositories in "+namespace, repositories, err)
		runs, err := env.Tekton.TektonV1().PipelineRuns(namespace).List(env.ctx, all)
		env.addJSON(aPipelineRun+" in "+namespace, runs, err)
	}
	ours := env.Plumbline.PlumblineV1alpha1()
	events := env.events()
	env.addJSON("GitEvents", events, nil)
	claims, err := ours.RepositoryClaims(env.Namespace).List(env.ctx, all)
	env.addJSON("RepositoryClaims", claims, err)
	for i := range events {
		blobs := []v1alpha1.BlobReference{events[i].Spec.Payload}
		streams := [][]byte{events[i].Payload}
		if plan := events[i].Status.Plan; plan != nil {
			blobs, streams = append(blobs, plan.Blobs...), append(streams, plan.Manifests)
		}
		for _, stream := range streams {
			if data, err := blob.Expand(stream); err == nil {
				env.readable.add("GitEvent "+events[i].Name, string(data))
			}
		}
		for _, ref := range blobs {
			data, err := blob.Read(env.ctx, ours.EventPayloads(env.Namespace), ref)
			if err == nil { // otherwise it was deleted: its event is settled, or the test deleted it
				env.readable.add("EventPayload "+ref.Name, string(data))
			}
		}
	}
}

// readMetrics adds the metrics of a process before it ends, if it answers: a test may have paused
// or killed it.
func (env *environment) readMetrics(process *installation.Process) {
	if !process.Running() {
		return
	}
	ctx, cancel := context.WithTimeout(env.ctx, 2*time.Second)
	defer cancel()
	if text, err := installation.Fetch(ctx, process.Metrics); err == nil {
		env.readable.add("the metrics of "+process.Name(), string(text))
	}
}

// readLogs passes on the logs of an installation's processes, or of all processes when the
// namespace is empty.
func readLogs(c *cluster.Cluster, namespace string, add func(place, text string)) error {
	var failed error
	for _, component := range []string{"receiver", "controller"} {
		files, err := filepath.Glob(filepath.Join(c.Dir(), "logs", namespace+"*-"+component+"-*.log"))
		failed = errors.Join(failed, err)
		for _, file := range files {
			data, err := os.ReadFile(file)
			failed = errors.Join(failed, err)
			add("the log "+filepath.Base(file), string(data))
		}
	}
	return failed
}

// auditLogs reads the logs of all tests once more at the end of the suite, when all secrets are
// known. The logs contain what processes printed at their end.
func auditLogs(c *cluster.Cluster) error {
	var leaked error
	logs := 0
	err := readLogs(c, "", func(place, text string) {
		logs++
		for _, found := range shared.secrets.Find(text) {
			leaked = errors.Join(leaked, fmt.Errorf("S32: %s contains, %s, the secret of %v", place, found.Form, found.Origins))
		}
	})
	if err == nil && logs == 0 {
		err = errors.New("S32: there is no log to look through")
	}
	return errors.Join(err, leaked)
}
