// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net/http"
	"runtime"

	"go.uber.org/zap"
	observability "knative.dev/pkg/observability/runtime"
)

// profile serves knative's profiling server until end is called, as the controller does with the
// key runtime-profiling. If that fails, it is logged, and deliveries are received anyway.
func profile(logger *zap.SugaredLogger, contention int) (end func()) {
	runtime.SetMutexProfileFraction(contention)
	server := observability.NewProfilingServer()
	server.SetEnabled(true)
	go func() {
		if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			logger.Errorw("serving profiles", zap.Error(err))
		}
	}()
	return func() { _ = server.Close() } // it only reads
}
