// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// nodeName is the only Node, which has space for everything.
const nodeName = "test-node"

const (
	// nodeWorkers is how many pods are worked on at once.
	nodeWorkers = 4
	// retryMin and retryMax bound the time after which what the API server did not answer is tried
	// again.
	retryMin, retryMax = 50 * time.Millisecond, time.Second
)

// node plays the scheduler and the kubelet: it takes every pod, runs it, and ends it as its
// annotations say. It retries a failed step until it works, so pods go on after any part was
// killed.
type node struct {
	core  corev1client.CoreV1Interface
	pods  cache.Store // as last seen, by namespace/name
	queue workqueue.TypedRateLimitingInterface[string]
	seen  sync.Map // UID of a pod that runs → time.Time at which it was first seen running
	// kubelet serves the logs of the pods.
	kubelet *kubelet
	end     context.CancelFunc
	ended   sync.WaitGroup
}

func newNode(config *rest.Config) (*node, error) {
	config = rest.CopyConfig(config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	pods := cache.NewStore(cache.MetaNamespaceKeyFunc)
	return &node{core: core, pods: pods, queue: NewQueue(), kubelet: newKubelet(core, pods)}, nil
}

// start registers the Node and returns; what it plays goes on until stop.
func (n *node) start(ctx context.Context) error {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("10000"), corev1.ResourceMemory: resource.MustParse("100Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Ti"), corev1.ResourcePods: resource.MustParse("10000"),
	}
	object := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName, Labels: map[string]string{
			corev1.LabelHostname: nodeName, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		}},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Plays"}},
		},
	}
	if err := n.kubelet.describe(&object.Status); err != nil {
		return err
	}
	if _, err := n.core.Nodes().Create(ctx, object, metav1.CreateOptions{FieldManager: fieldManager}); err != nil {
		return fmt.Errorf("creating the Node: %w", err)
	}
	ctx, n.end = context.WithCancel(context.WithoutCancel(ctx))
	n.ended.Go(func() { wait.UntilWithContext(ctx, n.follow, retryMin) })
	for range nodeWorkers {
		n.ended.Go(func() {
			Work(n.queue, n.pods, func(key string, pod *corev1.Pod) error { return n.step(ctx, key, pod) })
		})
	}
	return nil
}

func (n *node) stop() {
	if n.end != nil {
		n.end()
	}
	n.queue.ShutDown()
	n.kubelet.server.CloseClientConnections()
	n.kubelet.server.Close()
	n.ended.Wait()
}

// follow updates pods until the watch ends. A client-go informer would wait for up to a minute
// after an outage.
func (n *node) follow(ctx context.Context) {
	list, err := n.core.Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	pods := make([]any, 0, len(list.Items))
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	_ = n.pods.Replace(pods, list.ResourceVersion) // pods have names
	for _, key := range n.pods.ListKeys() {
		n.queue.Add(key)
	}
	watching, err := n.core.Pods("").Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return
	}
	defer watching.Stop()
	for event := range watching.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		switch {
		case !ok:
			return // an error: the list is too old
		case event.Type == watch.Deleted:
			_ = n.pods.Delete(pod)
			n.seen.Delete(pod.UID)
		default:
			_ = n.pods.Update(pod)
			n.queue.Add(pod.Namespace + "/" + pod.Name)
		}
	}
}

// NewQueue returns a queue of objects' keys for Work.
func NewQueue() workqueue.TypedRateLimitingInterface[string] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](retryMin, retryMax)
	return workqueue.NewTypedRateLimitingQueue(limiter)
}

// Work calls step for the objects of the queue's keys until the queue is shut down. It retries a
// step that fails, except after a conflict: the newer object is queued by itself.
func Work[T any](
	queue workqueue.TypedRateLimitingInterface[string], objects cache.Store, step func(key string, object T) error,
) {
	for key, over := queue.Get(); !over; key, over = queue.Get() {
		var err error
		if object, found, _ := objects.GetByKey(key); found {
			err = step(key, object.(T))
		}
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			queue.Forget(key)
		} else {
			queue.AddRateLimited(key)
		}
		queue.Done(key)
	}
}

func (n *node) step(ctx context.Context, key string, pod *corev1.Pod) error {
	pods := n.core.Pods(pod.Namespace)
	switch {
	case pod.DeletionTimestamp != nil: // gone at once, whatever it still wanted to do
		return pods.Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
		})
	case pod.Annotations[ByHandAnnotation] == "true":
		return nil
	case pod.Spec.NodeName == "":
		return pods.Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: nodeName},
		}, metav1.CreateOptions{FieldManager: fieldManager})
	case pod.Status.Phase == corev1.PodPending:
		return n.write(ctx, runningPod(pod, metav1.Now()))
	case pod.Status.Phase != corev1.PodRunning || !endsByItself(pod):
		return nil
	}
	if left := time.Until(n.firstSeen(pod.UID).Add(duration(pod))); left > 0 {
		n.queue.AddAfter(key, left)
		return nil
	}
	return n.write(ctx, finished(pod, metav1.Now()))
}

// write fails with a conflict if the pod is another one by now.
func (n *node) write(ctx context.Context, pod *corev1.Pod) error {
	_, err := n.core.Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{FieldManager: fieldManager})
	return err
}

func (n *node) firstSeen(pod types.UID) time.Time {
	at, _ := n.seen.LoadOrStore(pod, time.Now())
	return at.(time.Time)
}

func duration(pod *corev1.Pod) time.Duration {
	milliseconds, _ := strconv.Atoi(pod.Annotations[DurationAnnotation]) // none is 0
	return time.Duration(milliseconds) * time.Millisecond
}
