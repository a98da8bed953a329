// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a real Kubernetes control plane and a real Tekton on one
// machine, without containers, for tests and for the demonstration.
//
// Start brings up etcd, kube-apiserver, the controllers of Kubernetes that matter here, Tekton's
// admission webhook and Tekton's controller as child processes on free loopback ports. The
// scheduler and the kubelet are played: pods of TaskRuns run to an end that annotations on the
// PipelineRun choose (see ExitCodeAnnotation and its neighbours).
//
// Every process is a Part that a test may kill, pause and restart, so that the
// failures a test sees are the ones Kubernetes really produces. What has to
// happen at exactly the k-th call goes through a Proxy with Rules instead.
//
// All child processes die with the process that started them (Linux).
package cluster
