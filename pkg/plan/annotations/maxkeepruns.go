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

// Keep is what an author says of how many ended runs of a pipeline are to be kept.
type Keep struct {
	// Most is the number, config.RetainAll if it is none.
	Most int64
	// Problem says why all of them are kept, "" if it is a number that the installation acts on.
	Problem string
}

// keeps reads the annotation max-keep-runs, nil if there is none. Who errs keeps more, never less.
func (o Options) keeps(annotations map[string]string) *Keep {
	written, found := annotations[pipelinesascode.MaxKeepRuns]
	if !found {
		return nil
	}
	most, err := strconv.ParseInt(strings.TrimSpace(written), 10, 64)
	says := pipelinesascode.MaxKeepRuns + " is " + strconv.Quote(o.Words(written))
	if err != nil && !errors.Is(err, strconv.ErrRange) || most < 0 {
		return &Keep{Most: config.RetainAll, Problem: says + ", which is not a whole number from 0: all runs are kept"}
	}
	if _, limited := o.Config.Retention.For(&most); !limited {
		return &Keep{Most: most, Problem: fmt.Sprintf("%s, more than %d: all runs are kept", says, config.MaxRetained)}
	}
	return &Keep{Most: most}
}
