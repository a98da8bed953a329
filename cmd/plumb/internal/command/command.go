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

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/terminal"
)

// The exit codes.
const (
	exitOK = 0
	// exitAuthor means that an author has to fix something, or that a --must-start pipeline does
	// not start.
	exitAuthor = 1
	// exitTool means that the question could not be answered.
	exitTool = 2
)

// Process has the arguments and streams of the process.
type Process struct {
	// Args are the program's name and its arguments.
	Args []string
	// Dir is the current directory.
	Dir      string
	In       io.Reader
	Out, Err io.Writer
	// Terminal returns what a stream is shown on; nil means terminal.Of.
	Terminal func(io.Writer) terminal.Terminal
	// Version is set by a release build.
	Version string
}

// errAuthor is returned after the answer has been written, when an author has to act.
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

// say writes a sentence for people to standard error. An error of that has no reader and is
// dropped.
func (p Process) say(format string, args ...any) {
	_, _ = fmt.Fprintf(p.Err, "plumb: "+format+"\n", args...)
}

func (p Process) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "plumb",
		Version:       p.versionLine(),
		Short:         "Show what Plumbline would do for an event, and set it up",
		SilenceUsage:  true,
		SilenceErrors: true,
		Long: "plumb plan answers from a working tree what Plumbline does in a cluster. It needs neither a cluster nor a network.\n\n" +
			"The other commands are for operators: they check, set up and uninstall an installation, with your own rights in the cluster.",
		Args: unknownCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SuggestionsMinimumDistance = 2
	if strings.HasPrefix(filepath.Base(p.Args[0]), "kubectl-") {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl plumb"}
	}
	root.SetVersionTemplate("{{.Version}}")
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(p.plan(), p.doctor(), group("bootstrap", "Register Plumbline at a Git service", p.bootstrap()),
		group("create", "Create an object", p.createRepository()),
		group("webhook", "Set up the webhook and the token of a repository", p.webhookAdd(), p.webhookUpdateToken()),
		p.migrate(), p.uninstall(), p.version())
	return root
}

// unknownCommand is returned for arguments of plumb itself: each of its commands takes its own.
func unknownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if meant := c.SuggestionsFor(args[0]); len(meant) > 0 {
		hint = fmt.Sprintf("Did you mean %s? ", meant[0])
	}
	return fmt.Errorf("no command is called %q. %s%s --help lists the commands", args[0], hint, c.CommandPath())
}

func flagError(c *cobra.Command, err error) error {
	var bad *strconv.NumError
	switch {
	case !errors.As(err, &bad):
	case bad.Func == "ParseInt": // the only flag of that type
		return fmt.Errorf("--number %q is not the number of a pull request: they count from 1", bad.Num)
	case bad.Func == "ParseBool":
		return fmt.Errorf("%q is neither true nor false: leave it out, the flag alone means true", bad.Num)
	}
	return fmt.Errorf("%w: %s --help lists the flags", err, c.CommandPath())
}

func (p Process) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := io.WriteString(c.OutOrStdout(), p.versionLine())
			return err
		},
	}
}

func (p Process) versionLine() string {
	return fmt.Sprintf("plumb %s (%s %s/%s)\n", p.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// devel is the version of a build that is no release.
const devel = "devel"

// version returns what the release build has set, or the version that go install fetched.
func version(set string) string {
	if set != devel {
		return set
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Sum != "" {
		return info.Main.Version
	}
	return devel
}
