// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/test/installation"
)

// lookEvery is the interval of the polls of processes and etcd.
const lookEvery = 200 * time.Millisecond

// watcher polls the processes and etcd. It restarts a process that ended, as the kubelet does.
type watcher struct {
	stage *stage
	stop  context.CancelFunc
	gone  sync.WaitGroup

	mu          sync.Mutex
	ended       []string
	peaks       map[*installation.Process]int64
	last, grown int64
}

// watch starts to poll.
func watch(s *stage) *watcher {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{stage: s, stop: cancel, peaks: map[*installation.Process]int64{}}
	w.measure(ctx)
	w.gone.Go(func() {
		for installation.Until(ctx, time.Now().Add(lookEvery)) {
			w.look(ctx)
		}
	})
	return w
}

func (w *watcher) look(ctx context.Context) {
	w.measure(ctx)
	for _, p := range []*installation.Process{w.stage.receiver, w.stage.controller} {
		if peak, err := p.Memory(installation.Peak); err == nil {
			w.mu.Lock()
			w.peaks[p] = max(w.peaks[p], peak)
			w.mu.Unlock()
		}
		if p.Running() {
			continue
		}
		how := fmt.Sprintf("%s (the kernel killed it for its memory %d times, see %s)", p.Name(), p.Limit.Killed(), p.Log())
		if err := p.Start(ctx); err != nil && ctx.Err() == nil {
			how += ": " + err.Error()
		}
		w.mu.Lock()
		w.ended = append(w.ended, how)
		w.mu.Unlock()
	}
}

// measure adds by how much etcd grew. What a compaction frees is not taken off.
func (w *watcher) measure(ctx context.Context) {
	now, err := w.stage.cluster.Storage(ctx)
	if err != nil {
		return // it is asked again
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last > 0 {
		w.grown += max(0, now-w.last)
	}
	w.last = now
}

// written is by how much etcd has grown since the beginning, in bytes.
func (w *watcher) written() int64 {
	w.measure(context.Background())
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.grown
}

// idle is what the processes have now.
func (w *watcher) idle() (receiver, controller int64, err error) {
	receiver, err = w.stage.receiver.Memory(installation.Resident)
	if err != nil {
		return 0, 0, err
	}
	controller, err = w.stage.controller.Memory(installation.Resident)
	return receiver, controller, err
}

// end stops looking, and says what ended and how much memory was used.
func (w *watcher) end(receiver, controller *Memory) []string {
	w.stop()
	w.gone.Wait()
	for p, m := range map[*installation.Process]*Memory{w.stage.receiver: receiver, w.stage.controller: controller} {
		m.Peak, m.Limit = w.peaks[p], p.Limit.Bytes
	}
	return w.ended
}
