// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// Mitigations are what hides a restart from clients, each with the change of a soak without it.
// The product has no switch for any of them except -drain-wait.
func Mitigations() map[string]func(*Options) {
	return map[string]func(*Options){
		"readiness":        func(o *Options) { o.Settings.IgnoreReadiness = true },
		"preStop":          func(o *Options) { o.Settings.Pod.PreStop = 0 },
		"drain-wait":       func(o *Options) { o.Settings.Pod.DrainWait = 0 },
		"connection-close": func(o *Options) { o.Programs.Receiver += unclosed },
		"both-waits":       func(o *Options) { o.Settings.Pod.PreStop, o.Settings.Pod.DrainWait = 0, 0 },
	}
}

const (
	// unclosed ends the name of the receiver that never says Connection: close.
	unclosed = "-unclosed"
	// closes is the line of server.go that it does not have.
	closes = `		w.Header().Set("Connection", "close")` + "\n"
)

// BuildUnclosed compiles, next to the receiver at path, one whose source lacks the line that says
// Connection: close. An overlay does that, not a hook in the product.
func BuildUnclosed(ctx context.Context, path string) error {
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	source, text, err := sourceUnclosed(root)
	if err != nil {
		return err
	}
	changed := path + unclosed + ".go"
	overlay := fmt.Appendf(nil, `{"Replace": {%q: %q}}`, source, changed)
	if err := errors.Join(
		os.WriteFile(changed, []byte(text), 0o600),
		os.WriteFile(path+unclosed+".json", overlay, 0o600),
	); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", "build", "-overlay="+path+unclosed+".json", "-o", path+unclosed,
		"./cmd/receiver")
	command.Dir = root
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building the receiver without Connection: close: %w\n%s", err, out)
	}
	return nil
}

// sourceUnclosed returns the path of the receiver's file that says Connection: close, and its text
// without that line.
func sourceUnclosed(root string) (path, text string, err error) {
	path = filepath.Join(root, "pkg", "receiver", "server.go")
	whole, err := os.ReadFile(path)
	if err != nil {
		return "", "", err
	}
	if strings.Count(string(whole), closes) != 1 {
		return "", "", fmt.Errorf("%s does not have once the line %q", path, closes)
	}
	return path, strings.Replace(string(whole), closes, "", 1), nil
}
