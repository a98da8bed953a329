// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"net/url"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/receiver/delivery"
)

// otherHost refuses a delivery that is not about the configured service, before anything else of
// the cluster is read: a payload must not choose which service Plumbline talks to.
func otherHost(d delivery.Decoded, baseURL, canonical string) *answer {
	configured := hostOf(baseURL)
	if configured == "" {
		return unavailable("the configuration cannot be read at the moment: send the delivery again later",
			fault.Transientf(reasonNoConfiguration, "the URL of %s is not known yet", d.Provider().Name))
	}
	if hostOf(canonical) == configured && hostOf("https://"+d.Spec().Host+"/x") == configured {
		return nil
	}
	return ignored(reasonOtherHost, "the delivery is about a repository on another host than "+configured)
}

// hostOf returns the host and port of a URL as CanonicalURL spells them, empty if there is none.
func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return ""
	}
	u.Path = "/x" // CanonicalURL needs a path
	canonical, err := v1alpha1.CanonicalURL(u.String())
	if err != nil {
		return ""
	}
	if u, err = url.Parse(canonical); err != nil {
		return ""
	}
	return u.Host
}
