// SPDX-License-Identifier: Apache-2.0

package apicalls

import (
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Client returns the client of one controller. It has a rate limit of its own, so that it delays no
// call for an event; a qps of 0 is client-go's default. Its user agent tells its reads of Secrets
// from those for events.
func Client(cfg *rest.Config, controller string, qps int) kubernetes.Interface {
	own := rest.CopyConfig(cfg)
	own.UserAgent, own.QPS, own.Burst = "plumbline-controller/"+controller, float32(qps), qps
	return kubernetes.NewForConfigOrDie(own)
}
