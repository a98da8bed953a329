// SPDX-License-Identifier: Apache-2.0

// Command kubectl is Kubernetes' own kubectl, of the version of the test control plane. Tests of
// the documentation run the commands of a page with it.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
)

func main() {
	os.Exit(cli.Run(cmd.NewDefaultKubectlCommand()))
}
