// SPDX-License-Identifier: Apache-2.0

package annotations

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/config"
)

// Keep is how many finished runs of a pipeline its author wants to keep.
type Keep struct {
	// Most is the number, config.KeepAll if the annotation is invalid.
	Most int64
	// Problem says why all of them are kept, "" if the installation acts on the number.
	Problem string
}

// keep reads the annotation max-keep-runs, nil if there is none. After a mistake more runs are
// kept, never fewer.
func (o Options) keep(annotations map[string]string) *Keep {
	written, found := annotations[pipelinesascode.MaxKeepRuns]
	if !found {
		return nil
	}
	most, err := strconv.ParseInt(strings.TrimSpace(written), 10, 64)
	says := pipelinesascode.MaxKeepRuns + " is " + strconv.Quote(o.Quote(written))
	if err != nil && !errors.Is(err, strconv.ErrRange) || most < 0 {
		return &Keep{Most: config.RetainAll, Problem: says + ", which is not a whole number from 0: all runs are kept"}
	}
	if _, limited := o.Config.Retention.For(&most); !limited {
		return &Keep{Most: most, Problem: fmt.Sprintf("%s, more than %d: all runs are kept", says, config.MaxRetained)}
	}
	return &Keep{Most: most}
}
