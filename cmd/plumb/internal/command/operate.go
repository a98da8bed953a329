// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	"github.com/plumbline-ci/plumbline/pkg/config"
)

// defaultAppSecret is the Secret of the GitHub App in config/.
const defaultAppSecret = "plumbline-github-app" // #nosec G101 -- a name

// target is the cluster and the installation that a command is about.
type target struct {
	kube.Flags
	// system is the namespace of the installation, configMap the name of its settings.
	system, configMap string
}

// define adds the flags that all commands for operators have.
func (t *target) define(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&t.system, "system-namespace", "plumbline", "`namespace` that Plumbline is installed in")
	f.StringVar(&t.configMap, "config-map", config.Name, "`name` of the ConfigMap with Plumbline's settings")
	f.StringVar(&t.Kubeconfig, "kubeconfig", "", "kubeconfig `file` (default: KUBECONFIG or ~/.kube/config)")
	f.StringVar(&t.Context, "context", "", "`context` of the kubeconfig (default: the current one)")
}

// noArgs refuses arguments: each of these commands takes flags only.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%q is not a flag: %s --help lists the flags", args[0], c.CommandPath())
	}
	return nil
}

// repositoryArg takes the name of one Repository.
func repositoryArg(c *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return fmt.Errorf("%s needs the name of one Repository: %s NAME --namespace NAMESPACE",
			c.CommandPath(), c.CommandPath())
	}
	return nil
}

// group is a command that has commands.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Args: unknownCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(commands...)
	return c
}

// maxSecret is the bytes of a token.
const maxSecret = 64 << 10

// secretFrom reads a secret from a file, - for standard input. Secrets are never arguments, which
// other users of the machine can see. An empty name is no secret.
func (p Process) secretFrom(flag, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	from := p.In
	if name != stdin {
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.Dir, name)
		}
		file, err := os.Open(name) // #nosec G304 -- the user names it
		if err != nil {
			return "", fmt.Errorf("--%s: %w", flag, err)
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	data, err := io.ReadAll(io.LimitReader(from, maxSecret+1))
	if err != nil {
		return "", fmt.Errorf("--%s: %w", flag, err)
	}
	value := strings.TrimSpace(string(data))
	switch {
	case len(data) > maxSecret:
		return "", fmt.Errorf("--%s: it has more than %d bytes, so it is no token", flag, maxSecret)
	case value == "":
		return "", fmt.Errorf("--%s: it is empty: write the token into it", flag)
	case strings.ContainsAny(value, "\n\r"):
		return "", fmt.Errorf("--%s: it has several lines: write nothing but the token into it", flag)
	}
	return value, nil
}

// errTwoFromStdin is returned for two secrets from one stream.
var errTwoFromStdin = errors.New("only one secret can be read from standard input: save the other one in a file")

// tell writes a line to standard output. An error of that has no reader and is dropped.
func (p Process) tell(format string, args ...any) { _, _ = fmt.Fprintf(p.Out, format+"\n", args...) }
