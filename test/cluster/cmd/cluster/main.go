// SPDX-License-Identifier: Apache-2.0

// Command cluster runs the test cluster for people, until Ctrl-C.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

func main() {
	dir := flag.String("dir", "", "folder for logs and data, kept at the end (default: a temporary one)")
	buildOnly := flag.Bool("build-only", false, "build what the cluster needs and exit")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *buildOnly {
		if _, err := cluster.Build(ctx, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "cluster:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(ctx, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string) error {
	c, err := cluster.Start(ctx, cluster.Options{Dir: dir, Progress: os.Stdout})
	if err != nil {
		return err
	}
	defer c.Stop()
	fmt.Printf(`
A Kubernetes with Tekton is running. In another terminal:

  export KUBECONFIG=%s
  kubectl get pipelineruns --all-namespaces --watch
  tail -f %s

Annotations on a PipelineRun choose how it ends:

  %s: "1"         every task fails with this code
  %s: "5000"    every task takes this long
  %s: "true"           runs until the annotation is taken off the pod

Ctrl-C stops it.
`, c.KubeconfigPath(), filepath.Join(c.Dir(), "logs", "*.log"),
		cluster.ExitCodeAnnotation, cluster.DurationAnnotation, cluster.HoldAnnotation)
	<-ctx.Done()
	fmt.Println("\nstopping")
	return nil
}
