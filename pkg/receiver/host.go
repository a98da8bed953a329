// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"net/url"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// otherHost refuses what is not about the configured service, before anything of the cluster but
// the webhook secret is read: a payload must not choose which service Plumbline talks to.
func otherHost(d *delivery, baseURL, canonical string, spec *v1alpha1.GitEventSpec) *answer {
	configured := hostOf(baseURL)
	if configured == "" {
		a := unavailable(
			"the configuration cannot be read at the moment",
			fault.Transientf("NoConfiguration", "the URL of %s is not known yet", d.provider.Name),
		)
		return &a
	}
	if hostOf(canonical) == configured && hostOf("https://"+spec.Host+"/x") == configured {
		return nil
	}
	a := ignored("OtherHost", "the delivery is about a repository on another host than "+configured)
	return &a
}

// hostOf returns host and port of a URL as CanonicalURL spells them, empty when there is none.
func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return ""
	}
	u.Path = "/x" // CanonicalURL wants a repository
	canonical, err := v1alpha1.CanonicalURL(u.String())
	if err != nil {
		return ""
	}
	if u, err = url.Parse(canonical); err != nil {
		return ""
	}
	return u.Host
}
