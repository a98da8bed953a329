// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net/url"
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// ValidateCheck refuses a check that a service could show with another conclusion than was meant,
// or whose origin could not be found again.
func ValidateCheck(name string, c status.Check) error {
	concluded := []status.Conclusion{status.Success, status.Failure, status.Cancelled, status.Skipped}
	switch {
	case name == "" || c.ExternalID == "":
		return fault.Operatorf(reasonBadCheck, "a check without name or external id is a defect of Plumbline")
	case c.State == status.Completed && !slices.Contains(concluded, c.Conclusion):
		return fault.Operatorf(reasonBadCheck, "a completed check with conclusion %q is a defect of Plumbline", c.Conclusion)
	case c.State != status.Completed && c.Conclusion != "":
		return fault.Operatorf(reasonBadCheck, "a check that is %q with a conclusion is a defect of Plumbline", c.State)
	}
	return nil
}

// DetailsURL returns raw if it is a web address of at most limit bytes, else "". A service would
// refuse the whole check because of it.
func DetailsURL(raw string, limit int) string {
	u, err := url.Parse(raw)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || len(raw) > limit {
		return ""
	}
	return raw
}
