// SPDX-License-Identifier: Apache-2.0

// Command chart checks, renders and packages charts/plumbline with the packages behind `helm lint`,
// `helm template` and `helm package`, so that a checkout needs no other program. It leaves out the
// rest of Helm, which would double the time to build it.
//
//	chart lint -f values.yaml
//	chart template -n plumbline -f values.yaml
//	chart package -version v0.1.0 -digests digests.txt -out dist
//
// `go run -C hack/tools/chart .` starts it in this directory, so the paths of its flags have to be
// absolute, or relative to it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	release "helm.sh/helm/v4/pkg/release/v1/util"
)

// source is the chart, seen from this directory.
const source = "../../../charts/plumbline"

// options are the flags of the commands.
type options struct {
	chart, namespace, version, digests, out string

	values map[string]any
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	slog.SetLogLoggerLevel(slog.LevelWarn) // Helm reports the symbolic link each time
	if len(args) == 0 {
		return errors.New("want a command: lint, template or package")
	}
	o := options{values: map[string]any{}}
	flags := flag.NewFlagSet("chart "+args[0], flag.ContinueOnError)
	flags.StringVar(&o.chart, "chart", source, "folder or package of the chart")
	flags.StringVar(&o.namespace, "n", "plumbline", "lint, template: namespace of the release")
	flags.Func("f", "lint, template: file with values; a later one overrides an earlier one", o.add)
	flags.StringVar(&o.version, "version", "", "package: version of the release, for example v0.1.0")
	flags.StringVar(&o.digests, "digests", "", "package: file with a line `<hex> <registry>/<command>` for each image")
	flags.StringVar(&o.out, "out", ".", "package: where to write it")
	command := map[string]func(io.Writer, options) error{"lint": check, "template": template, "package": pack}[args[0]]
	if command == nil {
		return fmt.Errorf("no command %q: lint, template or package", args[0])
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return command(out, o)
}

// add merges a file of values into those of earlier files.
func (o *options) add(file string) error {
	values, err := common.ReadValuesFile(file)
	if err != nil {
		return err
	}
	o.values = loader.MergeMaps(o.values, values)
	return nil
}

// check is `helm lint --strict`.
func check(out io.Writer, o options) error {
	failed := 0
	for _, message := range lint.RunAll(o.chart, o.values, o.namespace).Messages {
		if message.Severity >= support.WarningSev {
			failed++
		}
		fmt.Fprintln(out, message)
	}
	if failed > 0 {
		return fmt.Errorf("%d errors and warnings", failed)
	}
	return nil
}

// template is `helm template`.
func template(out io.Writer, o options) error {
	files, err := render(o)
	if err != nil {
		return err
	}
	for file := range files {
		if strings.HasSuffix(file, "/NOTES.txt") {
			delete(files, file)
		}
	}
	_, manifests, err := release.SortManifests(files, nil, release.InstallOrder)
	if err != nil {
		return err
	}
	for _, manifest := range manifests {
		if _, err := fmt.Fprintf(out, "---\n# Source: %s\n%s\n", manifest.Name, manifest.Content); err != nil {
			return err
		}
	}
	return nil
}

// render returns the rendered templates by file.
func render(o options) (map[string]string, error) {
	c, err := loader.Load(o.chart)
	if err != nil {
		return nil, err
	}
	install := common.ReleaseOptions{Name: "plumbline", Namespace: o.namespace, Revision: 1, IsInstall: true}
	values, err := util.ToRenderValues(c, o.values, install, common.DefaultCapabilities.Copy())
	if err != nil {
		return nil, err
	}
	return engine.Render(c, values)
}
