// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// top is how many functions are printed of a profile.
const top = 20

// locks are the frames that a profile of mutexes ends in: who calls them is of interest.
const locks = `^(internal/)?sync\.`

// Profile puts CPU, heap and mutex profiles of receiver and controller, and a CPU profile of the
// API server, into dir, taken while pushes come at the first rate to many installations, and prints
// the top of each.
func Profile(ctx context.Context, o Options, dir string) error {
	if len(o.Rates) == 0 {
		return errors.New("there is no rate to profile at")
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	return installation.Play{Name: "profile", Programs: o.Programs}.Run(
		ctx, func(ctx context.Context, c *cluster.Cluster, programs installation.Programs) error {
			r := &room{during: o.During, programs: programs, cluster: c}
			s, err := r.open(ctx, setting{
				installations: many,
				config:        [][3]string{{"plumbline-config-observability", "runtime-profiling", "enabled"}},
				receiverFlags: []string{"-profiling", "-mutex-profile-fraction=1"},
				flags:         []string{"-mutex-profile-fraction=1"},
			})
			if err == nil {
				err = s.profile(ctx, o, dir)
			}
			return errors.Join(err, r.close())
		})
}

// profile takes the profiles under load and prints them.
func (s *stage) profile(ctx context.Context, o Options, dir string) error {
	group, loaded := errgroup.WithContext(ctx)
	seconds := max(1, int(o.During.Seconds()))
	for _, p := range s.processes() {
		group.Go(func() error {
			return fetch(loaded, fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", p.Profiling, seconds),
				filepath.Join(dir, p.name+".cpu"))
		})
	}
	group.Go(func() error {
		events := s.prepare(count(o.Rates[0], o.During), s.repos...)
		installation.OpenLoop(loaded, each(o.Rates[0]), len(events),
			func(i int, due time.Time) { s.push(loaded, events[i], due) })
		return nil
	})
	group.Go(func() error {
		data, err := s.kube.Discovery().RESTClient().Get().AbsPath("/debug/pprof/profile").Param("seconds",
			strconv.Itoa(seconds)).DoRaw(loaded)
		return errors.Join(err, os.WriteFile(filepath.Join(dir, cluster.APIServer+".cpu"), data, 0o600))
	})
	if err := group.Wait(); err != nil {
		return err
	}
	for _, p := range s.processes() {
		for _, kind := range []string{"heap", "mutex"} {
			if err := fetch(ctx, p.Profiling+"/debug/pprof/"+kind, filepath.Join(dir, p.name+"."+kind)); err != nil {
				return err
			}
		}
	}
	show := []string{cluster.APIServer + ".cpu"}
	for _, p := range s.processes() {
		show = append(show, p.name+".cpu", p.name+".heap", p.name+".mutex")
	}
	for _, name := range show {
		path := filepath.Join(dir, name)
		_, _ = fmt.Fprintf(o.To, "\n%s\n", path)
		command := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", fmt.Sprintf("-nodecount=%d", top), "-hide="+locks,
			path)
		command.Stdout, command.Stderr = o.To, io.Discard
		if err := command.Run(); err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
	}
	return nil
}

func fetch(ctx context.Context, url, path string) error {
	data, err := installation.Fetch(ctx, url)
	return errors.Join(err, os.WriteFile(path, data, 0o600))
}
