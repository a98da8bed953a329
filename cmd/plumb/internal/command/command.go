// SPDX-License-Identifier: Apache-2.0

// Package command is the command line of plumb.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitOK = 0
	// exitAuthor says that an author has to mend something, or that what must start does not.
	exitAuthor = 1
	// exitTool says that the question could not be answered.
	exitTool = 2
)

// Process is what a command has of its process.
type Process struct {
	// Args are the program's name and its arguments.
	Args []string
	// Dir is the current directory.
	Dir      string
	In       io.Reader
	Out, Err io.Writer
	// Version is what a release build has set.
	Version string
}

// errAuthor ends a command whose answer is written already: an author has to act.
var errAuthor = errors.New("an author has to act")

// Run carries out a command and returns its exit code.
func Run(ctx context.Context, p Process) int {
	p.Version = version(p.Version)
	root := p.root()
	root.SetArgs(p.Args[1:])
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errAuthor):
		return exitAuthor
	}
	p.say("%s", err)
	return exitTool
}

// say writes a sentence for people beside the answer. There is nobody to tell that it cannot be
// written.
func (p Process) say(format string, args ...any) {
	_, _ = fmt.Fprintf(p.Err, "plumb: "+format+"\n", args...)
}

func (p Process) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "plumb",
		Short:         "Show what Plumbline would do for an event",
		SilenceUsage:  true,
		SilenceErrors: true,
		Long:          "plumb plan answers from a working tree what Plumbline does in a cluster. It needs neither a cluster nor a network.",
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	if strings.HasPrefix(filepath.Base(p.Args[0]), "kubectl-") {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl plumb"}
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if number := (*strconv.NumError)(
			nil,
		); errors.As(err, &number) &&
			number.Func == "ParseInt" { // the only flag of that type
			return fmt.Errorf("--number %q is not the number of a pull request: they count from 1", number.Num)
		}
		return fmt.Errorf("%w: %s --help lists the flags", err, c.CommandPath())
	})
	root.AddCommand(p.plan(), p.version())
	return root
}

func (p Process) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(
				c.OutOrStdout(),
				"plumb %s (%s %s/%s)\n",
				p.Version,
				runtime.Version(),
				runtime.GOOS,
				runtime.GOARCH,
			)
			return err
		},
	}
}

// devel is the version of what no release has built.
const devel = "devel"

// version is what the release build has set, or what go install has got.
func version(set string) string {
	if set != devel {
		return set
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Sum != "" {
		return info.Main.Version
	}
	return devel
}
