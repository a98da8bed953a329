// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net/url"
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// CheckCheck refuses what would make a service conclude something else than what was meant, or hide
// whose check it is.
func CheckCheck(name string, c status.Check) error {
	concluded := []status.Conclusion{status.Success, status.Failure, status.Cancelled, status.Skipped}
	switch {
	case name == "" || c.ExternalID == "":
		return fault.Operatorf("BadCheck", "a check without name or external id is a defect of Plumbline")
	case c.State == status.Completed && !slices.Contains(concluded, c.Conclusion):
		return fault.Operatorf("BadCheck", "a completed check with conclusion %q is a defect of Plumbline", c.Conclusion)
	case c.State != status.Completed && c.Conclusion != "":
		return fault.Operatorf("BadCheck", "a check that is %q with a conclusion is a defect of Plumbline", c.State)
	}
	return nil
}

// DetailsURL drops what a service would refuse, and with it the whole check: what is not a web
// address of at most limit bytes.
func DetailsURL(raw string, limit int) string {
	u, err := url.Parse(raw)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || len(raw) > limit {
		return ""
	}
	return raw
}
