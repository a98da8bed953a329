// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/delivery"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/settings"
)

// stdin is the name of a file that is standard input.
const stdin = "-"

// settings reads the Repository and the ConfigMap of files.
func (w *planner) settings() (*settings.Settings, error) {
	repository, err := w.read("repository", w.repository, maxSettings)
	if err != nil {
		return nil, err
	}
	config, err := w.read("config", w.config, maxSettings)
	if err != nil {
		return nil, err
	}
	read, err := settings.FromFiles(repository, config, w.namespace)
	if err != nil {
		return nil, err
	}
	return read, nil
}

// recorded reads the delivery from the files of --payload and --headers. It returns nil without
// --payload.
func (w *planner) recorded() (*delivery.Delivery, error) {
	if w.payload == "" {
		return nil, nil
	}
	payload, err := w.read("payload", w.payload, maxPayload)
	if err != nil {
		return nil, err
	}
	headers, err := w.read("headers", w.headers, maxSettings)
	if err != nil {
		return nil, err
	}
	recorded, err := delivery.Recorded(payload, headers, w.key)
	if err != nil {
		return nil, err
	}
	return &recorded, nil
}

// read returns a file that a flag names, nil if it names none.
func (w *planner) read(flag, name string, limit int64) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	if name == stdin {
		return limited(flag, "standard input", w.command.InOrStdin(), limit)
	}
	name = w.path(name)
	file, err := os.Open(name) // #nosec G304 -- the user of plumb names it
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--%s: there is no file %s", flag, name)
	}
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	defer func() { _ = file.Close() }() // it was only read
	return limited(flag, name, file, limit)
}

// path resolves a file name relative to the current directory.
func (w *planner) path(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(w.Dir, name)
}

func limited(flag, name string, from io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("--%s: reading %s: %w", flag, name, err)
	case int64(len(data)) > limit:
		return nil, fmt.Errorf("--%s: %s has more than %d MiB, and Plumbline reads no more: is it the right file?",
			flag, name, limit>>20)
	case len(data) == 0:
		return nil, fmt.Errorf("--%s: %s is empty", flag, name)
	}
	return data, nil
}
