// SPDX-License-Identifier: Apache-2.0

package annotations

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Retries is how many times a pipeline is started again after the cluster made it fail.
type Retries struct {
	Most int32
	// Problem says why the installation's setting applies although the annotation is set, "" if the
	// annotation is valid.
	Problem string
}

// retries reads the annotation infrastructure-retries. Without it, or if it is invalid, the
// installation's setting applies.
func (o Options) retries(annotations map[string]string) Retries {
	standard := Retries{Most: int32(o.Config.InfrastructureRetries)} //nolint:gosec // a few
	written, found := annotations[plumbline.InfrastructureRetriesAnnotation]
	if !found {
		return standard
	}
	most, err := strconv.ParseUint(strings.TrimSpace(written), 10, 32)
	if err != nil || most > v1alpha1.MaxInfrastructureRetries {
		standard.Problem = fmt.Sprintf("%s is %s, which is not a whole number from 0 to %d: %d applies",
			plumbline.InfrastructureRetriesAnnotation, strconv.Quote(o.Quote(written)), v1alpha1.MaxInfrastructureRetries,
			standard.Most)
		return standard
	}
	return Retries{Most: int32(most)}
}
